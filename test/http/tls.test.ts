import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkTls, readTlsTexts } from "../../src/http/tls.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { pairs } from "../fixtures/tls.ts";

const folder = mkdtempSync(join(tmpdir(), "gds-tls-"));
const at = (name: string) => join(folder, name);

beforeAll(() => {
  writeFileSync(at("one.crt"), pairs.one.cert);
  writeFileSync(at("one.key"), pairs.one.key);
  writeFileSync(at("two.key"), pairs.two.key);
  writeFileSync(at("garbage"), "garbage");
});
afterAll(() => rmSync(folder, { recursive: true }));

async function read(cert: string, key: string, clientCa?: string) {
  const paths = {
    certPath: at(cert),
    keyPath: at(key),
    clientCaPath: clientCa === undefined ? undefined : at(clientCa),
  };
  return checkTls(await readTlsTexts(paths), paths);
}

async function refused(...files: Parameters<typeof read>): Promise<string> {
  try {
    await read(...files);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "startup") return error.message;
    throw error;
  }
  throw new Error("the files were not refused");
}

test("a certificate and its own key are taken, with the time in which they are valid", async () => {
  expect(await read("one.crt", "one.key")).toEqual({
    ...pairs.one,
    clientCa: undefined,
    notBeforeMs: Date.UTC(2026, 10, 30, 13, 16, 45),
    notAfterMs: Date.UTC(2126, 10, 6, 13, 16, 45),
  });
});

test("a file that is not there is named, with its flag", async () => {
  expect(await refused("none", "one.key")).toStartWith(
    `--tls-cert-path: cannot read ${at("none")}: ENOENT`,
  );
  expect(await refused("one.crt", "none")).toStartWith(
    `--tls-key-path: cannot read ${at("none")}: ENOENT`,
  );
  expect(await refused("one.crt", "one.key", "none")).toStartWith(
    `--tls-client-ca-path: cannot read ${at("none")}: ENOENT`,
  );
});

test("a file that holds something else is named, with its flag", async () => {
  expect(await refused("garbage", "one.key")).toStartWith(
    `--tls-cert-path: ${at("garbage")} is no PEM certificate chain`,
  );
  expect(await refused("one.key", "one.crt")).toStartWith(
    `--tls-cert-path: ${at("one.key")} is no PEM certificate chain`,
  );
  expect(await refused("one.crt", "garbage")).toStartWith(
    `--tls-key-path: ${at("garbage")} holds no PEM private key`,
  );
  expect(await refused("one.crt", "one.key", "garbage")).toStartWith(
    `--tls-client-ca-path: ${at("garbage")} holds no PEM certificates`,
  );
});

test("a broken certificate behind the first is found as well", async () => {
  const broken = pairs.two.cert.replace(/\n(.{10})/, "\n##########");
  writeFileSync(at("chain"), `${pairs.one.cert}\n${broken}`);
  expect(await refused("chain", "one.key")).toStartWith(
    `--tls-cert-path: ${at("chain")} is no PEM certificate chain`,
  );
  expect(await refused("one.crt", "one.key", "chain")).toStartWith(
    `--tls-client-ca-path: ${at("chain")} holds no PEM certificates`,
  );
  writeFileSync(at("chain"), `${pairs.one.cert}\n${pairs.two.cert}`);
  expect((await read("chain", "one.key")).key).toBe(pairs.one.key);
});

test("a certificate that does not begin its line is refused, as what serves it would", async () => {
  for (const odd of ["\u{feff}", " ", "-"]) {
    writeFileSync(at("odd"), `${odd}${pairs.one.cert}`);
    expect(await refused("odd", "one.key")).toBe(
      `--tls-cert-path: ${at("odd")} is no PEM certificate chain: ` +
        "no line begins with -----BEGIN CERTIFICATE-----",
    );
  }
});

test("a key of another certificate is refused", async () => {
  expect(await refused("one.crt", "two.key")).toBe(
    `--tls-key-path: ${at("two.key")} is not the key of the certificate in ${at("one.crt")}`,
  );
});
