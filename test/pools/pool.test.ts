import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  compareIds,
  keyOf,
  originUrl,
  type PoolKey,
  poolName,
  sortKey,
} from "../../src/pools/pool.ts";
import { anyKey } from "../support/arbitraries.ts";

test("the sort key of a key can be read back, so no two keys meet", () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      const id = sortKey(key);
      expect(keyOf(id)).toEqual(key);
      expect(id.split("/")).toHaveLength(3);
    }),
    { numRuns: 2000 },
  );
});

test("what is no sort key has no key", () => {
  for (const text of ["", "a", "a/b", "a/b/c/d"]) expect(keyOf(text)).toBeUndefined();
});

test("keys that would be alike without the encoding are not", () => {
  const ids = [
    ["a/b", "c", "d"],
    ["a", "b/c", "d"],
    ["a%2Fb", "c", "d"],
    ["a%252Fb", "c", "d"],
    ["a", "b", "c/d"],
  ].map(([cluster_id = "", namespace = "", dgd_name = ""]) =>
    sortKey({ cluster_id, namespace, dgd_name }),
  );
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids[0]).toBe("a%2Fb/c/d");
});

test("keys are ordered part by part in code-unit order", () => {
  fc.assert(
    fc.property(anyKey, anyKey, (a, b) => {
      const parts = (key: PoolKey) => [key.cluster_id, key.namespace, key.dgd_name];
      const at = parts(a).findIndex((part, index) => part !== parts(b)[index]);
      const left = parts(a)[at] ?? "";
      const right = parts(b)[at] ?? "";
      const order = Math.sign(compareIds(sortKey(a), sortKey(b)));
      expect(order).toBe(at < 0 ? 0 : left < right ? -1 : 1);
      expect(Math.sign(compareIds(sortKey(b), sortKey(a)))).toBe(order === 0 ? 0 : -order);
    }),
    { numRuns: 2000 },
  );
  // U+10000 is D800 DC00 in code units: before U+FF5E, though its number is higher.
  const id = (cluster_id: string) => sortKey({ cluster_id, namespace: "n", dgd_name: "d" });
  expect(compareIds(id("\u{10000}"), id("\uff5e"))).toBeLessThan(0);
  expect(compareIds(id("Z"), id("a"))).toBeLessThan(0);
  expect(compareIds(id("a"), id("a-b"))).toBeLessThan(0);
  expect(compareIds(id("a%"), id("a/"))).toBeLessThan(0);
  expect(compareIds(id("a/"), id("a.b"))).toBeGreaterThan(0);
  // What stands in a table need not be a sort key.
  expect(compareIds("a", "a/")).toBeLessThan(0);
});

test("a pool's name is its key with slashes", () => {
  expect(poolName({ cluster_id: "aws-west", namespace: "dynamo", dgd_name: "m" })).toBe(
    "aws-west/dynamo/m",
  );
});

test.each([
  ["http://10.43.1.2:8000", "http://10.43.1.2:8000/"],
  ["http://10.43.1.2:8000/", "http://10.43.1.2:8000/"],
  ["HTTP://Example.COM", "http://example.com/"],
  ["https://example.com:443/", "https://example.com/"],
  ["http://example.com:80", "http://example.com/"],
  ["https://example.com:80", "https://example.com:80/"],
  ["http://[2001:DB8:0::1]:80", "http://[2001:db8::1]/"],
  ["http://b\u00fccher.example", "http://xn--bcher-kva.example/"],
  ["http://example.com/.", "http://example.com/"],
])("%p is an origin, kept as %p", (text, kept) => {
  expect(originUrl(text)).toBe(kept);
});

test.each([
  "",
  "example.com",
  "http://",
  "ftp://example.com/",
  "javascript:alert(1)",
  "http://example.com/a",
  "http://example.com/?",
  "http://example.com/#",
  "http://example.com/?a=b",
  "http://user@example.com/",
  "http://:secret@example.com/",
  "http://example.com:99999/",
  "http://exa mple.com/",
  "//example.com/",
])("%p is not an origin", (text) => {
  expect(originUrl(text)).toBeUndefined();
});
