import { describe, expect, test } from "bun:test";
import { BodyReader } from "../../src/http/body.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { limits } from "../../src/runtime/limits.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { thrownBy } from "../support/thrown-by.ts";

/** A request whose body comes when the test says so, with its length told beforehand or not. */
function slowRequest(length?: number) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
  });
  const headers = new Headers({ "Content-Type": "application/json" });
  if (length !== undefined) headers.set("Content-Length", String(length));
  return {
    request: new Request("http://x/pools", { method: "POST", headers, body }),
    send: (bytes: number) => controller?.enqueue(Buffer.alloc(bytes, " ")),
    end: () => controller?.close(),
    breakOff: () => controller?.error(new Error("gone")),
  };
}

function make() {
  const clock = new FakeClock();
  const { log, lines } = recordedLog();
  const reader = new BodyReader(clock, log);
  const read = (request: Request) => reader.readJson(request);
  /** Has as many of the largest bodies begun as are received at a time. */
  const fill = () =>
    Array.from({ length: limits.largeBodiesBytes / limits.bodyBytes }, () => {
      const slow = slowRequest(limits.bodyBytes);
      return { ...slow, text: read(slow.request) };
    });
  return { clock, lines, read, fill };
}

const json = (text: string) =>
  new Request("http://x/pools", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Content-Length": String(text.length) },
    body: text,
  });

describe("large bodies that are being received", () => {
  test("are refused with 503 above 32 MiB together, and small ones never", async () => {
    const { read, fill, lines } = make();
    fill();
    const error = await thrownBy(() => read(json("x".repeat(limits.smallBodyBytes + 1))));
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ code: "unavailable" });
    expect(error.message).toContain("33554432 bytes");
    expect(await read(json("x".repeat(limits.smallBodyBytes)))).toHaveLength(16_384);
    expect(lines).toEqual([
      {
        level: "warn",
        message: "large bodies are refused: too much is being received; look who sends them",
        fields: { limit_bytes: 33_554_432 },
      },
    ]);
  });

  test("are refused as they come where their length is not told", async () => {
    const { read, fill } = make();
    fill();
    const slow = slowRequest();
    const reading = thrownBy(() => read(slow.request));
    slow.send(limits.smallBodyBytes);
    slow.send(1);
    expect(await reading).toMatchObject({ code: "unavailable" });
  });

  test("leave their room when they have ended, or broken off", async () => {
    const { read, fill } = make();
    const [first, second] = fill();
    const large = () => read(json("x".repeat(limits.bodyBytes)));
    first?.send(limits.bodyBytes);
    first?.end();
    expect(await first?.text).toHaveLength(limits.bodyBytes);
    expect(await large()).toHaveLength(limits.bodyBytes);
    second?.breakOff();
    await Promise.allSettled([second?.text]);
    const pieces = [slowRequest(), slowRequest()].map((slow) => ({
      ...slow,
      text: read(slow.request),
    }));
    for (const slow of pieces) {
      for (let n = 0; n < 8; n += 1) slow.send(limits.bodyBytes / 8);
    }
    await Bun.sleep(0);
    expect(await thrownBy(large)).toMatchObject({ code: "unavailable" });
    for (const slow of pieces) {
      slow.end();
      expect(await slow.text).toHaveLength(limits.bodyBytes);
    }
    expect(await large()).toHaveLength(limits.bodyBytes);
  });

  test("are warned of once a minute", async () => {
    const { clock, lines, read, fill } = make();
    fill();
    const refuse = () => thrownBy(() => read(json("x".repeat(limits.bodyBytes))));
    await refuse();
    clock.advance(59_999);
    await refuse();
    expect(lines).toHaveLength(1);
    clock.advance(1);
    await refuse();
    expect(lines).toHaveLength(2);
  });
});
