import { describe, expect, test } from "bun:test";
import { eventOf, pageOf } from "../../src/kubernetes/decode.ts";

const METADATA = { name: "s", namespace: "dynamo", resourceVersion: "1" };
const ENDPOINT = { addresses: ["10.0.0.1"], conditions: { ready: true } };

function page(slice: unknown, metadata: unknown = { resourceVersion: "7" }) {
  return pageOf(JSON.stringify({ metadata, items: [slice] }));
}

function event(slice: unknown) {
  return eventOf(JSON.stringify({ type: "ADDED", object: slice }));
}

const slice = (parts: Readonly<Record<string, unknown>> = {}) => ({
  metadata: METADATA,
  addressType: "IPv4",
  ...parts,
});
const withEndpoint = (parts: Readonly<Record<string, unknown>>) =>
  slice({ endpoints: [{ ...ENDPOINT, ...parts }] });

test("what a slice leaves out or has as null is read as nothing", () => {
  const nothing = {
    metadata: { ...METADATA, labels: null, annotations: null },
    addressType: "IPv4",
    endpoints: [],
    ports: [],
  };
  const nulls = slice({ endpoints: null, ports: null });
  for (const each of [slice(), nulls]) expect(page(each).slices).toEqual([nothing]);
  const endpoint = { addresses: [], conditions: { ready: null }, hostname: null, targetRef: null };
  for (const each of [{}, { addresses: null, conditions: null, hostname: null, targetRef: null }]) {
    expect(page(slice({ endpoints: [each] })).slices[0]?.endpoints).toEqual([endpoint]);
  }
  for (const each of [{}, { name: null, port: null, appProtocol: null }]) {
    expect(page(slice({ ports: [each] })).slices[0]?.ports).toEqual([
      { name: null, port: null, appProtocol: null },
    ]);
  }
});

describe("what is of another type than the API says is refused, in a list and in a watch", () => {
  const CASES: readonly (readonly [unknown, string])[] = [
    [null, "an EndpointSlice is no object"],
    [slice({ metadata: [] }), "an EndpointSlice's metadata is no object"],
    [slice({ metadata: { ...METADATA, name: 1 } }), "an EndpointSlice's name is no string"],
    [
      slice({ metadata: { ...METADATA, resourceVersion: undefined } }),
      "an EndpointSlice's resourceVersion is no string",
    ],
    [
      slice({ metadata: { ...METADATA, labels: { a: 1 } } }),
      "one of an EndpointSlice's labels is no string",
    ],
    [
      slice({ metadata: { ...METADATA, annotations: "a" } }),
      "an EndpointSlice's annotations is no object",
    ],
    [slice({ addressType: null }), "an EndpointSlice's addressType is no string"],
    [slice({ endpoints: {} }), "an EndpointSlice's endpoints are no list"],
    [slice({ endpoints: [null] }), "an endpoint is no object"],
    [withEndpoint({ addresses: "10.0.0.1" }), "an endpoint's addresses are no list"],
    [withEndpoint({ addresses: [10] }), "an endpoint's address is no string"],
    [withEndpoint({ conditions: true }), "an endpoint's conditions is no object"],
    [
      withEndpoint({ conditions: { ready: "false" } }),
      "an endpoint's ready is neither true nor false",
    ],
    [withEndpoint({ hostname: {} }), "an endpoint's hostname is no string"],
    [withEndpoint({ targetRef: { name: 1 } }), "the name of a targetRef is no string"],
    [slice({ ports: [8000] }), "a port is no object"],
    ...[-1, 1.5, 65_536, "8000"].map(
      (port) => [slice({ ports: [{ port }] }), "a port's number is none"] as const,
    ),
    [slice({ ports: [{ name: 1 }] }), "a port's name is no string"],
  ];
  test.each(CASES)("%j", (each, reason) => {
    expect(() => page(each)).toThrow(reason);
    expect(() => event(each)).toThrow(reason);
  });
});

test("a list whose continue token can't be used is refused, not taken for the whole", () => {
  const metadata = (next: unknown) => ({ resourceVersion: "7", continue: next });
  expect(page(slice(), metadata("more")).continueToken).toBe("more");
  for (const none of ["", null, undefined]) {
    expect(page(slice(), metadata(none)).continueToken).toBeUndefined();
  }
  expect(() => page(slice(), metadata(5))).toThrow("a list's continue is no string");
});
