import { describe, expect, test } from "bun:test";
import type { TlsTexts } from "../../src/http/tls.ts";
import { openTls } from "../../src/http/tls-watch.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { pairs } from "../fixtures/tls.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { thrownBy } from "../support/thrown-by.ts";

const one: TlsTexts = { ...pairs.one, clientCa: undefined };
const two: TlsTexts = { ...pairs.two, clientCa: undefined };
const mismatched: TlsTexts = { ...two, key: one.key };
const paths = { certPath: "tls.crt", keyPath: "tls.key", clientCaPath: undefined };

/** A service whose files hold `files.now`, or can't be read where that is an error. */
async function watching({ wallMs = Date.UTC(2027, 0, 1) } = {}) {
  const clock = new FakeClock();
  clock.setWall(wallMs);
  const { log, lines } = recordedLog();
  const files: { now: TlsTexts | Error } = { now: one };
  const served: unknown[] = [];
  const opened = await openTls(paths, {
    clock,
    log,
    read: async () => {
      if (files.now instanceof Error) throw files.now;
      return files.now;
    },
  });
  const serve = { fails: false };
  const stop = opened.watch(async ({ cert }) => {
    if (serve.fails) throw new Error("this system can't");
    served.push(cert);
  });
  return {
    files,
    served,
    lines,
    serve,
    stop,
    clock,
    warnings: () => lines.filter(({ level }) => level === "warn"),
    /** Lets time pass, in steps that leave each look the time to end. */
    async pass(secs: number) {
      for (let passed = 0; passed < secs; passed += 1) {
        clock.advance(1000);
        await Bun.sleep(0);
      }
    },
  };
}

describe("files that change", () => {
  test("are served within 10 s, once", async () => {
    const { files, served, lines, pass } = await watching();
    await pass(20);
    expect(served).toEqual([]);
    files.now = two;
    await pass(5);
    expect(served).toEqual([two.cert]);
    await pass(60);
    expect(served).toEqual([two.cert]);
    expect(lines).toEqual([
      {
        level: "info",
        message: "the TLS files have changed; new connections are served with them",
        fields: { valid_until: "2126-11-06T13:16:45.000Z" },
      },
    ]);
  });

  test("and change back before they were served change nothing", async () => {
    const { files, served, lines, pass } = await watching();
    files.now = two;
    await pass(2);
    files.now = one;
    await pass(20);
    expect(served).toEqual([]);
    expect(lines).toEqual([]);
  });

  test("are served when they have come to rest: half of a bundle never is", async () => {
    const { files, served, pass } = await watching();
    for (const clientCa of ["a", "b", "c"].map((mark) => `${pairs.one.cert}\n${mark}`)) {
      files.now = { ...two, clientCa };
      await pass(2);
    }
    expect(served).toEqual([]);
    await pass(2);
    expect(served).toEqual([two.cert]);
  });

  test("are looked at no more once that is over", async () => {
    const { files, served, stop, clock, pass } = await watching();
    stop();
    files.now = two;
    await pass(20);
    expect(served).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});

describe("a pair that doesn't match", () => {
  test("for less than two seconds is nobody's business", async () => {
    const { files, served, lines, pass } = await watching();
    files.now = mismatched;
    await pass(2);
    files.now = two;
    await pass(5);
    expect(served).toEqual([two.cert]);
    expect(lines.map(({ level }) => level)).toEqual(["info"]);
  });

  test("is refused with a warning that names the files, and what was before stays", async () => {
    const { files, served, lines, pass } = await watching();
    files.now = mismatched;
    await pass(5);
    expect(served).toEqual([]);
    expect(lines).toEqual([
      {
        level: "warn",
        message:
          "the TLS files as they are now can't be served; what they held before is, until they are mended",
        fields: { problem: "--tls-key-path: tls.key is not the key of the certificate in tls.crt" },
      },
    ]);
  });

  test("is warned of once a minute as long as it stays, and served once it is mended", async () => {
    const { files, served, warnings, pass } = await watching();
    files.now = mismatched;
    await pass(59);
    expect(warnings()).toHaveLength(1);
    await pass(10);
    expect(warnings()).toHaveLength(2);
    files.now = two;
    await pass(5);
    expect(served).toEqual([two.cert]);
    await pass(120);
    expect(warnings()).toHaveLength(2);
  });
});

test("a file that can't be read, or is empty, is refused in the same way", async () => {
  for (const wrong of [new ServiceError("startup", "--tls-key-path: gone"), { ...one, cert: "" }]) {
    const { files, served, warnings, pass } = await watching();
    files.now = wrong;
    await pass(30);
    expect(served).toEqual([]);
    expect(warnings()).toHaveLength(1);
    expect(warnings()[0]?.fields?.problem).toMatch(/^--tls-(key|cert)-path: /);
  }
});

test("what can't be served is warned of, and tried again", async () => {
  const { files, served, serve, warnings, pass } = await watching();
  serve.fails = true;
  files.now = two;
  await pass(20);
  expect(warnings().map(({ fields }) => fields)).toEqual([{ problem: "this system can't" }]);
  serve.fails = false;
  await pass(2);
  expect(served).toEqual([two.cert]);
});

test("a certificate that is not valid is served, and warned of once a minute", async () => {
  for (const wallMs of [Date.UTC(2026, 10, 1), Date.UTC(2127, 0, 1)]) {
    const { warnings, pass } = await watching({ wallMs });
    expect(warnings().map(({ fields }) => fields)).toEqual([
      {
        file: "tls.crt",
        valid_from: "2026-11-30T13:16:45.000Z",
        valid_until: "2126-11-06T13:16:45.000Z",
      },
    ]);
    await pass(59);
    expect(warnings()).toHaveLength(1);
    await pass(2);
    expect(warnings()).toHaveLength(2);
  }
});

test("files that can't be served at the start are a start-up error", async () => {
  const clock = new FakeClock();
  const { log } = recordedLog();
  const opening = openTls(paths, { clock, log, read: async () => mismatched });
  expect(await thrownBy(() => opening)).toMatchObject({ code: "startup" });
});
