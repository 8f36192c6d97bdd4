import { expect, test } from "bun:test";
import fc from "fast-check";
import { Listing } from "../../src/directory/listing.ts";
import { type PoolKey, sortKey } from "../../src/pools/pool.ts";
import { anyKey } from "../support/arbitraries.ts";
import { makeKey } from "../support/pools.ts";

/** The order of the reference: part by part, each in code-unit order. */
const byParts = (a: PoolKey, b: PoolKey) => {
  const parts = ["cluster_id", "namespace", "dgd_name"] as const;
  const differing = parts.find((part) => a[part] !== b[part]);
  return differing === undefined ? 0 : a[differing] < b[differing] ? -1 : 1;
};
const idOf = (name: string) => sortKey(makeKey(name));
const body = (listing: Listing, complete = true) =>
  new TextDecoder().decode(listing.representation(complete).bytes);

test("an empty list is a list", () => {
  expect(body(new Listing(), false)).toBe('{"pools":[],"complete":false}');
});

test("the list is sorted by key, whatever was put and removed in whatever order", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyKey, fc.boolean()), { maxLength: 30 }), (steps) => {
      const listing = new Listing();
      const expected = new Map<string, PoolKey>();
      for (const [key, present] of steps) {
        if (present) {
          listing.put(sortKey(key), JSON.stringify(key));
          expected.set(sortKey(key), key);
        } else {
          const gone = [...expected.keys()][0] ?? sortKey(key);
          listing.remove(gone);
          expected.delete(gone);
        }
      }
      const pools = [...expected.values()].sort(byParts);
      expect(body(listing)).toBe(JSON.stringify({ pools, complete: true }));
    }),
  );
});

test("the same content gives the same bytes and ETag, whatever the way to it", () => {
  const one = new Listing();
  one.put(idOf("a"), '"a"');
  one.put(idOf("b"), '"b"');
  const other = new Listing();
  other.put(idOf("b"), '"old"');
  other.put(idOf("c"), '"c"');
  other.representation(true);
  other.put(idOf("a"), '"a"');
  other.remove(idOf("c"));
  other.put(idOf("b"), '"b"');
  expect(other.representation(true).hash).toBe(one.representation(true).hash);
  expect(other.representation(true).bytes).toEqual(one.representation(true).bytes);
});

test("a long list has the bytes and the ETag of its pools, however they came and went", () => {
  const names = Array.from({ length: 600 }, (_, index) => `pool-${index}`);
  const steps = fc.array(
    fc.tuple(
      fc.shuffledSubarray(names, { minLength: 100 }),
      fc.constantFrom("put", "change", "remove"),
    ),
    { minLength: 1, maxLength: 8 },
  );
  fc.assert(
    fc.property(steps, (steps) => {
      const listing = new Listing((json) => `[${json}]`);
      const expected = new Map<string, string>();
      for (const [[...names], what] of steps) {
        for (const name of names) {
          if (what === "remove") {
            listing.remove(idOf(name));
            expected.delete(name);
          } else {
            const json = `"${what} ${name}"`;
            listing.put(idOf(name), json);
            expected.set(name, json);
          }
        }
        expect(listing.size).toBe(expected.size);
        const sorted = [...expected].sort(([a], [b]) => (a < b ? -1 : 1));
        const pools = sorted.map(([, json]) => `[${json}]`).join(",");
        expect(body(listing)).toBe(`{"pools":[${pools}],"complete":true}`);
        const other = new Listing((json) => `[${json}]`);
        for (const [name, json] of sorted) other.put(idOf(name), json);
        expect(other.representation(true).hash).toBe(listing.representation(true).hash);
      }
    }),
    { numRuns: 30 },
  );
});

test("what was made of the list stays as it was, whatever becomes of the list", async () => {
  const listing = new Listing();
  const long = JSON.stringify("x".repeat(2000));
  listing.put(idOf("a"), long);
  const before = listing.representation(true);
  listing.put(idOf("a"), '"other"');
  listing.representation(true).in("zstd");
  const text = `{"pools":[${long}],"complete":true}`;
  expect(new TextDecoder().decode(before.bytes)).toBe(text);
  for (const coding of ["identity", "gzip", "zstd"] as const) {
    const body = await before.in(coding).bytes();
    if (coding === "identity") expect(new TextDecoder().decode(body)).toBe(text);
    else
      expect((coding === "gzip" ? Bun.gunzipSync : Bun.zstdDecompressSync)(body)).toEqual(
        Buffer.from(text),
      );
  }
});

test("nothing is made anew while the content stays", () => {
  const listing = new Listing();
  listing.put(idOf("a"), '"a"');
  const before = listing.representation(true);
  listing.put(idOf("a"), '"a"');
  listing.remove(idOf("not there"));
  expect(listing.representation(true)).toBe(before);
});

test("the ETag changes with the pools and with complete", () => {
  const listing = new Listing();
  const hashes = new Set([listing.representation(true).hash, listing.representation(false).hash]);
  listing.put(idOf("a"), '"a"');
  hashes.add(listing.representation(true).hash);
  listing.put(idOf("a"), '"b"');
  hashes.add(listing.representation(true).hash);
  expect(hashes.size).toBe(4);
});
