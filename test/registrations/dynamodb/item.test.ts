import { expect, test } from "bun:test";
import fc from "fast-check";
import { sortKey } from "../../../src/pools/pool.ts";
import { decode, encode, parseText } from "../../../src/registrations/dynamodb/item.ts";
import { anyRegistration } from "../../support/arbitraries.ts";

const renewal = { renewedAtMs: 1_764_505_722_999, leaseSecs: 15, writtenIn: "us-west-2" };

test("an item has the attributes of the reference, and its housekeeping date is a week away", () => {
  expect(encode("{}", renewal)).toEqual({
    registration: { S: "{}" },
    renewed_at: { N: "1764505722999" },
    lease_s: { N: "15" },
    written_in: { S: "us-west-2" },
    expires_at: { N: String(1_764_505_722 + 604_800) },
  });
});

test("what is written is what is read, for any registration that the table can hold", () => {
  fc.assert(
    fc.property(anyRegistration, (registration) => {
      const id = sortKey(registration.key);
      fc.pre(Buffer.byteLength(id) <= 1024);
      const text = JSON.stringify(registration);
      const item = decode({ sk: { S: id }, ...encode(text, renewal) });
      expect(item).toEqual({ id, text, ...renewal });
      expect(parseText(id, text)).toEqual(registration);
    }),
  );
});

test("numbers may come in any form that DynamoDB writes", () => {
  const read = (N: string) => decode({ renewed_at: { N } }).renewedAtMs;
  expect(read("1.7E12")).toBe(1_700_000_000_000);
  expect(read("+5")).toBe(5);
  expect(read("-1.5")).toBe(-1.5);
  for (const odd of ["1e400", "", "NaN", "0x10x", "five"]) {
    expect(read(odd)).toBeUndefined();
  }
});

test("what is missing or of another type is undefined", () => {
  expect(decode({})).toEqual({
    id: undefined,
    text: undefined,
    renewedAtMs: undefined,
    leaseSecs: undefined,
    writtenIn: undefined,
  });
  expect(
    decode({
      registration: { N: "5" },
      renewed_at: { S: "5" },
      lease_s: { NULL: true },
      written_in: { SS: ["a"] },
    }),
  ).toMatchObject({ text: undefined, renewedAtMs: undefined, leaseSecs: undefined });
});

test("a registration of another pool than its item's, or no registration at all, is none", () => {
  const registration = {
    key: { cluster_id: "a", namespace: "b", dgd_name: "c" },
    location: { region: "r" },
    model: "m",
    added_later: true,
  };
  const text = JSON.stringify(registration);
  expect(parseText("a/b/c", text)?.model).toBe("m");
  expect(parseText("a/b/d", text)).toBeUndefined();
  expect(parseText("a/b/c", text.slice(1))).toBeUndefined();
  expect(parseText("a/b/c", "[]")).toBeUndefined();
  expect(parseText("a/b/c", '"\ud800"')).toBeUndefined();
});

test("an attribute that is not of its type is as one that is missing", () => {
  const missing = { id: undefined, text: undefined, renewedAtMs: undefined };
  for (const odd of [1, null, {}, ["a"], true]) {
    // What a server sends that is not DynamoDB.
    const item = JSON.parse(
      JSON.stringify({ sk: { S: odd }, registration: odd, renewed_at: { N: odd } }),
    );
    expect(decode(item)).toMatchObject(missing);
  }
});
