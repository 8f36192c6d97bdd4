import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sortKey } from "../../src/pools/pool.ts";
import { parseRegistration } from "../../src/pools/schema.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { anyRegistration } from "../support/arbitraries.ts";

const example = {
  key: { cluster_id: "aws-west", namespace: "dynamo", dgd_name: "mocker-west-1" },
  location: { region: "us-west-2", availability_zone: "us-west-2a", datacenter: "d1" },
  model: "Qwen/Qwen3-0.6B",
  capabilities: ["aggregated"],
  frontends: ["http://10.43.1.2:8000/"],
  capacity: [{ sku: "H100", workers: 8 }],
};

const parse = (body: unknown) => parseRegistration(JSON.stringify(body));

/** The message of the refusal of a body. */
function refused(body: string): string {
  try {
    parseRegistration(body);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "invalid") return error.message;
    throw error;
  }
  throw new Error("the body was not refused");
}

const refusedWith = (change: Record<string, unknown>) =>
  refused(JSON.stringify({ ...example, ...change }));

test("what the service keeps is what was sent, for any registration", () => {
  fc.assert(
    fc.property(anyRegistration, (registration) => {
      fc.pre(Buffer.byteLength(sortKey(registration.key)) <= 1024);
      expect(JSON.stringify(parse(registration))).toBe(JSON.stringify(registration));
    }),
  );
});

test("fields come out in the order of the reference, whatever order they came in", () => {
  const { capacity, model, key, ...rest } = example;
  const mixed = {
    capacity,
    ...rest,
    model,
    key: { dgd_name: "d", namespace: "n", cluster_id: "c" },
  };
  expect(JSON.stringify(parse(mixed))).toBe(
    JSON.stringify({ ...example, key: { cluster_id: "c", namespace: "n", dgd_name: "d" } }),
  );
});

test("lists and places that are left out or null are empty lists and null", () => {
  const empty = {
    key: example.key,
    location: { region: "r", availability_zone: null, datacenter: null },
    model: "m",
    capabilities: [],
    frontends: [],
    capacity: [],
  };
  expect(parse({ key: example.key, location: { region: "r" }, model: "m" })).toEqual(empty);
  expect(parse({ ...empty, capabilities: null, frontends: null, capacity: null })).toEqual(empty);
});

test("unknown fields are ignored at every level", () => {
  const extended = {
    ...example,
    extra: "\u0000",
    key: { ...example.key, extra: 1 },
    location: { ...example.location, extra: [] },
    capacity: [{ sku: "H100", workers: 8, extra: {} }],
  };
  expect(parse(extended)).toEqual(example);
});

test("a field called __proto__ is an unknown field like any other", () => {
  const body = JSON.stringify(example).replace(
    "{",
    '{"__proto__":{"model":"polluted","capabilities":["x"]},',
  );
  expect(parseRegistration(body)).toEqual(example);
  expect(refused('{"__proto__":{"key":{},"model":"m","location":{}}}')).toContain("key must be");
  expect("polluted" in {}).toBe(false);
});

test("__proto__ and constructor are ids like any other", () => {
  const key = { cluster_id: "__proto__", namespace: "constructor", dgd_name: "toString" };
  expect(parse({ ...example, key }).key).toEqual(key);
});

test("of a repeated field the last counts", () => {
  const body = JSON.stringify(example).replace("{", '{"model":"first",');
  expect(parseRegistration(body).model).toBe(example.model);
});

test("a whole number may be written as 8.0, 8e0 or -0", () => {
  const workers = (text: string) =>
    parseRegistration(JSON.stringify(example).replace('"workers":8', `"workers":${text}`))
      .capacity[0]?.workers;
  expect(workers("8.0")).toBe(8);
  expect(workers("8e0")).toBe(8);
  expect(workers("4294967295")).toBe(4294967295);
  expect(Object.is(workers("-0"), 0)).toBe(true);
});

test("a frontend is kept in the URL standard's form", () => {
  expect(parse({ ...example, frontends: ["HTTP://Example.com:80"] }).frontends).toEqual([
    "http://example.com/",
  ]);
});

describe("a body is refused", () => {
  test.each([
    ["[]", "the body must be a JSON object"],
    ["null", "the body must be a JSON object"],
    ['"x"', "the body must be a JSON object"],
    ["", "the body is not valid JSON"],
    ["{", "the body is not valid JSON"],
    ["{}{}", "the body is not valid JSON"],
    ["[".repeat(250_000), "the body is not valid JSON"],
  ])("when it is no JSON object: %.20p", (body, message) => {
    expect(refused(body)).toBe(message);
  });

  test.each(["key", "location", "model"])("when %s is missing or null", (field) => {
    const { [field]: _, ...rest } = example as Record<string, unknown>;
    expect(refused(JSON.stringify(rest))).toMatch(`${field} must be`);
    expect(refusedWith({ [field]: null })).toMatch(`${field} must be`);
  });

  test.each(["cluster_id", "namespace", "dgd_name"])("when key.%s is not a legal id", (part) => {
    const withPart = (value: unknown) => refusedWith({ key: { ...example.key, [part]: value } });
    for (const value of [
      "",
      " a",
      "a ",
      "\u00a0a",
      "a\u3000",
      "a".repeat(254),
      "\u{1f600}".repeat(64),
      "a\u0000",
      "a\nb",
      "a\u007f",
      "a\u0085b",
      "a\ud800",
      5,
      null,
      ["a"],
    ]) {
      expect(withPart(value)).toMatch(`key.${part} must be`);
    }
  });

  test("when the key as a whole is too long, however legal its parts", () => {
    const key = (length: number) => ({
      cluster_id: "a".repeat(253),
      namespace: "b".repeat(253),
      // 3 bytes each once encoded.
      dgd_name: "/".repeat(length),
    });
    // 253 + 1 + 253 + 1 + 3 x 172 = 1024.
    expect(parse({ ...example, key: key(172) }).key.dgd_name).toHaveLength(172);
    expect(refusedWith({ key: key(173) })).toStartWith("key must be at most 1024 bytes long");
  });

  test.each(["availability_zone", "datacenter"])("when location.%s is no text", (place) => {
    for (const value of [5, {}, [], false, "a\u0001", "\udfff"]) {
      expect(refusedWith({ location: { ...example.location, [place]: value } })).toMatch(
        `location.${place} must be`,
      );
    }
  });

  test.each([
    ["model", { model: " " }],
    ["model", { model: "" }],
    ["location.region", { location: { region: "\u3000" } }],
    ["capabilities[1]", { capabilities: ["a", " "] }],
    ["capabilities[0]", { capabilities: [5] }],
    ["capabilities", { capabilities: "a" }],
    ["capabilities", { capabilities: { length: 0 } }],
    ["frontends[1]", { frontends: ["http://a", "http://a/b"] }],
    ["frontends[0]", { frontends: [null] }],
    ["frontends[0]", { frontends: ["http://a\t"] }],
    ["capacity[0]", { capacity: ["H100"] }],
    ["capacity[0].sku", { capacity: [{ workers: 1 }] }],
    ["capacity[0].sku", { capacity: [{ sku: "", workers: 1 }] }],
    ["capacity[0].workers", { capacity: [{ sku: "H100" }] }],
    ["capacity[0].workers", { capacity: [{ sku: "H100", workers: -1 }] }],
    ["capacity[0].workers", { capacity: [{ sku: "H100", workers: 1.5 }] }],
    ["capacity[0].workers", { capacity: [{ sku: "H100", workers: 4294967296 }] }],
    ["capacity[0].workers", { capacity: [{ sku: "H100", workers: "8" }] }],
    ["capacity[0].workers", { capacity: [{ sku: "H100", workers: null }] }],
  ])("and the message names %s", (field, change) => {
    expect(refusedWith(change)).toStartWith(`${field} must be`);
  });

  test("and every field at fault is named", () => {
    const message = refusedWith({ model: "", capabilities: [1, 2, 3], capacity: 5 });
    expect(message).toContain("model must be");
    expect(message).toContain("capabilities[0] must be");
    expect(message).toContain("capacity must be");
  });

  test("with a message that stays short and clean, whatever the input", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom("key", "location", "model", "capacity"),
        (value, field) => {
          fc.pre(!(field === "model" && typeof value === "string"));
          fc.pre(
            !(field === "capacity" && (value === null || (Array.isArray(value) && !value.length))),
          );
          const message = refusedWith({ [field]: value });
          expect(message.length).toBeLessThan(2000);
          expect(message).not.toMatch(/\p{Cc}/u);
        },
      ),
    );
    expect(refusedWith({ model: 1, capacity: Array(50_000).fill(1) }).length).toBeLessThan(200);
    expect(refusedWith({ location: { region: "\u0000".repeat(100_000) } }).length).toBeLessThan(
      200,
    );
  });
});
