import { expect, test } from "bun:test";
import { type Coding, Representation } from "../../src/directory/representation.ts";
import { chooseCoding, isUnchanged } from "../../src/http/negotiate.ts";

const large = new Representation("x".repeat(1025));
const small = new Representation("x".repeat(1024));
const request = (headers: Record<string, string>) => new Request("http://x/", { headers });

test.each<[string, Coding]>([
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip", "gzip"],
  ["GZIP", "gzip"],
  ["zstd;q=0.5, gzip;q=1", "gzip"],
  ["zstd;q=0.5, gzip;q=0.4", "zstd"],
  ["zstd;q=0, gzip", "gzip"],
  ["zstd;q=0, gzip;q=0.000", "identity"],
  ["*", "zstd"],
  ["*;q=0", "identity"],
  ["br, deflate", "identity"],
  ["identity, gzip;q=0.5", "identity"],
  ["", "identity"],
  [",;q=,;;", "identity"],
])("Accept-Encoding: %s is answered with %s", (accepted, coding) => {
  expect(chooseCoding(request({ "accept-encoding": accepted }), large)).toBe(coding);
});

test("the choice is the same when a value comes again, also after a great many others", () => {
  const choice = () => chooseCoding(request({ "accept-encoding": "gzip" }), large);
  for (let n = 0; n < 1000; n += 1) {
    expect(choice()).toBe("gzip");
    const other = n % 2 === 0 ? "zstd" : "identity";
    expect(chooseCoding(request({ "accept-encoding": `${other}, x-${n}` }), large)).toBe(other);
  }
});

test("without Accept-Encoding, and up to 1 KiB, bodies are sent as they are", () => {
  expect(chooseCoding(request({}), large)).toBe("identity");
  expect(chooseCoding(request({ "accept-encoding": "zstd, gzip" }), small)).toBe("identity");
});

test("the ETag of any coding of the current body matches, strong or weak, alone or in a list", () => {
  const { hash } = large;
  for (const condition of [
    `"${hash}"`,
    `"${hash}-gzip"`,
    `"${hash}-zstd"`,
    `W/"${hash}"`,
    `"other", W/"${hash}-gzip" ,"more"`,
    `"a,b","${hash}"`,
    "*",
    " * ",
  ]) {
    expect(isUnchanged(condition, large)).toBe(true);
  }
});

test("any other ETag does not match", () => {
  const { hash } = large;
  for (const condition of [
    `"${small.hash}"`,
    hash,
    `"${hash}-br"`,
    `"${hash.slice(1)}"`,
    `"x${hash}"`,
    '"*"',
    "",
  ]) {
    expect(isUnchanged(condition, large)).toBe(false);
  }
  expect(isUnchanged(null, large)).toBe(false);
});
