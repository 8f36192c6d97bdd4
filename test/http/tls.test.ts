import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTlsPair } from "../../src/http/tls.ts";
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

function refused(cert: string, key: string): string {
  try {
    readTlsPair(at(cert), at(key));
  } catch (error) {
    if (error instanceof ServiceError && error.code === "startup") return error.message;
    throw error;
  }
  throw new Error("the pair was not refused");
}

test("a certificate and its own key are taken", () => {
  expect(readTlsPair(at("one.crt"), at("one.key"))).toEqual(pairs.one);
});

test("a file that is not there is named, with its flag", () => {
  expect(refused("none", "one.key")).toStartWith(
    `--tls-cert-path: cannot read ${at("none")}: ENOENT`,
  );
  expect(refused("one.crt", "none")).toStartWith(
    `--tls-key-path: cannot read ${at("none")}: ENOENT`,
  );
});

test("a file that holds something else is named, with its flag", () => {
  expect(refused("garbage", "one.key")).toStartWith(
    `--tls-cert-path: ${at("garbage")} is no PEM certificate chain`,
  );
  expect(refused("one.key", "one.crt")).toStartWith(
    `--tls-cert-path: ${at("one.key")} is no PEM certificate chain`,
  );
  expect(refused("one.crt", "garbage")).toStartWith(
    `--tls-key-path: ${at("garbage")} holds no PEM private key`,
  );
});

test("a broken certificate behind the first is found as well", () => {
  const broken = pairs.two.cert.replace(/\n(.{10})/, "\n##########");
  writeFileSync(at("chain"), `${pairs.one.cert}\n${broken}`);
  expect(refused("chain", "one.key")).toStartWith(
    `--tls-cert-path: ${at("chain")} is no PEM certificate chain`,
  );
  writeFileSync(at("chain"), `${pairs.one.cert}\n${pairs.two.cert}`);
  expect(readTlsPair(at("chain"), at("one.key")).key).toBe(pairs.one.key);
});

test("a key of another certificate is refused", () => {
  expect(refused("one.crt", "two.key")).toBe(
    `--tls-key-path: ${at("two.key")} is not the key of the certificate in ${at("one.crt")}`,
  );
});
