import { expect, test } from "bun:test";
import fc from "fast-check";
import { RequestCounts } from "../../src/http/request-counts.ts";
import { listen } from "../../src/http/server.ts";
import { checkTls, type TlsTexts, tlsOptions } from "../../src/http/tls.ts";
import { openTls } from "../../src/http/tls-watch.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { pairs } from "../fixtures/tls.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FUZZ_DEADLINE_MS, fuzz, mutatedBytes } from "../support/fuzz.ts";
import { makeAnswer } from "../support/make-answer.ts";
import { recordedLog } from "../support/recorded-log.ts";

const paths = { certPath: "tls.crt", keyPath: "tls.key", clientCaPath: "ca.crt" };
const GOOD: TlsTexts = { ...pairs.one, clientCa: pairs.two.cert };

/** The bytes that a PEM text stands for. */
function derOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64");
}

function pemOf(label: string, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${Buffer.from(der).toString("base64")}\n-----END ${label}-----\n`;
}

/** PEM that is not quite right, in its text or in the bytes that it stands for. */
function mutatedPem(label: string, ...pems: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    mutatedBytes([...pems, pems.join("")]).map(String),
    mutatedBytes(pems.map(derOf)).map((der) => pemOf(label, der)),
    fc.tuple(fc.constantFrom(...pems), mutatedBytes(pems.map(derOf))).map(([pem, der]) => {
      return pem + pemOf(label, der);
    }),
    // What editors and tools leave before it.
    fc
      .tuple(fc.constantFrom("\u{feff}", "\0", "Bag Attributes\n"), fc.constantFrom(...pems))
      .map(([odd, pem]) => odd + pem),
  );
}

const certificates = [pairs.one.cert, pairs.two.cert];
const anyTexts: fc.Arbitrary<TlsTexts> = fc.oneof(
  mutatedPem("CERTIFICATE", ...certificates).map((cert) => ({ ...GOOD, cert })),
  mutatedPem("CERTIFICATE", ...certificates).map((clientCa) => ({ ...GOOD, clientCa })),
  mutatedPem("PRIVATE KEY", pairs.one.key, pairs.two.key).map((key) => ({ ...GOOD, key })),
);

/** Serves with `texts` for a moment. */
async function serve(texts: TlsTexts): Promise<void> {
  const clock = new FakeClock();
  const server = listen({
    address: { host: "127.0.0.1", port: 0 },
    tls: tlsOptions({ ...texts, clientCa: undefined }),
    routes: { "/": () => makeAnswer({ body: "served" }) },
    requests: new RequestCounts(clock),
    clock,
    log: recordedLog().log,
  });
  try {
    // Clients may refuse what is odd within a certificate, which is their right.
    if (!texts.cert.startsWith(pairs.one.cert)) return;
    const response = await fetch(server.url, { tls: { rejectUnauthorized: false } });
    expect(await response.text()).toBe("served");
  } finally {
    await server.drain();
  }
}

test(
  "a certificate or key is refused with its flag and file, or can be served with",
  () =>
    fuzz("TLS files", anyTexts, 500, async (texts) => {
      try {
        checkTls(texts, paths);
        await serve(texts);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        expect(error.code).toBe("startup");
        expect(error.message).toMatch(
          /^--tls-(cert-path: tls\.crt |key-path: tls\.key |client-ca-path: ca\.crt |cert-path, )/,
        );
        expect(error.message).not.toMatch(/\.[jt]s:\d|is not a function|\n/);
      }
    }),
  FUZZ_DEADLINE_MS,
);

test(
  "files that change are served, or the ones before are, and a warning says why",
  () =>
    fuzz("changed TLS files", anyTexts, 300, async (texts) => {
      const clock = new FakeClock();
      clock.setWall(Date.UTC(2027, 0, 1));
      const { log, lines } = recordedLog();
      let files = GOOD;
      const served: Bun.TLSOptions[] = [];
      const tls = await openTls(paths, { clock, log, read: async () => files });
      const stop = tls.watch(async (options) => {
        served.push(options);
      });
      files = texts;
      for (let passed = 0; passed < 10; passed += 1) {
        clock.advance(1000);
        await Bun.sleep(0);
      }
      stop();
      const isSame = Bun.deepEquals(texts, GOOD);
      const warnings = lines.filter(({ message }) => message.includes("can't be served"));
      expect(served.length + warnings.length).toBe(isSame ? 0 : 1);
      if (served.length > 0) checkTls(texts, paths);
    }),
  FUZZ_DEADLINE_MS,
);
