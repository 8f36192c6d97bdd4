import { expect, test } from "bun:test";
import fc from "fast-check";
import { Listing } from "../../src/directory/listing.ts";
import { compareKeys, type PoolKey, sortKey } from "../../src/pools/pool.ts";
import { anyKey } from "../support/arbitraries.ts";
import { makeKey } from "../support/pools.ts";

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
          listing.put(key, JSON.stringify(key));
          expected.set(sortKey(key), key);
        } else {
          const gone = [...expected.values()][0] ?? key;
          listing.remove(gone);
          expected.delete(sortKey(gone));
        }
      }
      const pools = [...expected.values()].sort(compareKeys);
      expect(body(listing)).toBe(JSON.stringify({ pools, complete: true }));
    }),
  );
});

test("the same content gives the same bytes and ETag, whatever the way to it", () => {
  const one = new Listing();
  one.put(makeKey("a"), '"a"');
  one.put(makeKey("b"), '"b"');
  const other = new Listing();
  other.put(makeKey("b"), '"old"');
  other.put(makeKey("c"), '"c"');
  other.representation(true);
  other.put(makeKey("a"), '"a"');
  other.remove(makeKey("c"));
  other.put(makeKey("b"), '"b"');
  expect(other.representation(true).hash).toBe(one.representation(true).hash);
  expect(other.representation(true).bytes).toEqual(one.representation(true).bytes);
});

test("nothing is made anew while the content stays", () => {
  const listing = new Listing();
  listing.put(makeKey("a"), '"a"');
  const before = listing.representation(true);
  listing.put(makeKey("a"), '"a"');
  listing.remove(makeKey("not there"));
  expect(listing.representation(true)).toBe(before);
});

test("the ETag changes with the pools and with complete", () => {
  const listing = new Listing();
  const hashes = new Set([listing.representation(true).hash, listing.representation(false).hash]);
  listing.put(makeKey("a"), '"a"');
  hashes.add(listing.representation(true).hash);
  listing.put(makeKey("a"), '"b"');
  hashes.add(listing.representation(true).hash);
  expect(hashes.size).toBe(4);
});
