import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseRegistration, refusalOf } from "../../src/pools/parse.ts";
import { type Registration, sortKey } from "../../src/pools/pool.ts";
import { anyRegistration } from "../support/arbitraries.ts";

const example = {
  key: { cluster_id: "aws-west", namespace: "dynamo", dgd_name: "mocker-west-1" },
  location: { region: "us-west-2", availability_zone: "us-west-2a", datacenter: "d1" },
  model: "Qwen/Qwen3-0.6B",
  capabilities: ["aggregated"],
  frontends: ["http://10.43.1.2:8000/"],
  capacity: [{ sku: "H100", workers: 8 }],
};

const parse = (body: unknown) => accepted(JSON.stringify(body));

function accepted(body: string): Registration {
  const registration = parseRegistration(body);
  if (registration === undefined) throw new Error(`the body was refused: ${body}`);
  return registration;
}

/** The message of the refusal of a body. */
async function refused(body: string): Promise<string> {
  expect(parseRegistration(body)).toBeUndefined();
  const { code, message } = await refusalOf(body);
  expect(code).toBe("invalid");
  return message;
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

test("a field called __proto__ is an unknown field like any other", async () => {
  const body = JSON.stringify(example).replace(
    "{",
    '{"__proto__":{"model":"polluted","capabilities":["x"]},',
  );
  expect(accepted(body)).toEqual(example);
  expect(await refused('{"__proto__":{"key":{},"model":"m","location":{}}}')).toContain(
    "key must be",
  );
  expect("polluted" in {}).toBe(false);
});

test("__proto__ and constructor are ids like any other", () => {
  const key = { cluster_id: "__proto__", namespace: "constructor", dgd_name: "toString" };
  expect(parse({ ...example, key }).key).toEqual(key);
});

test("of a repeated field the last counts", () => {
  const body = JSON.stringify(example).replace("{", '{"model":"first",');
  expect(accepted(body).model).toBe(example.model);
});

test("a whole number may be written as 8.0, 8e0 or -0", () => {
  const workers = (text: string) =>
    accepted(JSON.stringify(example).replace('"workers":8', `"workers":${text}`)).capacity[0]
      ?.workers;
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
  ])("when it is no JSON object: %.20p", async (body, message) => {
    expect(await refused(body)).toBe(message);
  });

  test.each(["key", "location", "model"])("when %s is missing or null", async (field) => {
    const { [field]: _, ...rest } = example as Record<string, unknown>;
    expect(await refused(JSON.stringify(rest))).toMatch(`${field} must be`);
    expect(await refusedWith({ [field]: null })).toMatch(`${field} must be`);
  });

  test.each(["cluster_id", "namespace", "dgd_name"])(
    "when key.%s is not a legal id",
    async (part) => {
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
        expect(await withPart(value)).toMatch(`key.${part} must be`);
      }
    },
  );

  test("when the key as a whole is too long, however legal its parts", async () => {
    const key = (length: number) => ({
      cluster_id: "a".repeat(253),
      namespace: "b".repeat(253),
      // 3 bytes each once encoded.
      dgd_name: "/".repeat(length),
    });
    // 253 + 1 + 253 + 1 + 3 x 172 = 1024.
    expect(parse({ ...example, key: key(172) }).key.dgd_name).toHaveLength(172);
    expect(await refusedWith({ key: key(173) })).toStartWith("key must be at most 1024 bytes long");
  });

  test.each(["availability_zone", "datacenter"])("when location.%s is no text", async (place) => {
    for (const value of [5, {}, [], false, "a\u0001", "\udfff"]) {
      expect(await refusedWith({ location: { ...example.location, [place]: value } })).toMatch(
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
  ])("and the message names %s", async (field, change) => {
    expect(await refusedWith(change)).toStartWith(`${field} must be`);
  });

  test("and every field at fault is named", async () => {
    const message = await refusedWith({ model: "", capabilities: [1, 2, 3], capacity: 5 });
    expect(message).toContain("model must be");
    expect(message).toContain("capabilities[0] must be");
    expect(message).toContain("capacity must be");
  });

  test("and of the rules that a value breaks, the first is named, on the same line", async () => {
    expect(await refusedWith({ frontends: ["\u0000"] })).toBe(
      "frontends[0] must be free of control characters (was '\\u{0}')",
    );
    expect(await refusedWith({ key: { ...example.key, dgd_name: "\ud800 " } })).toBe(
      "key.dgd_name must be well-formed Unicode (was '\\u{d800} ')",
    );
  });

  test("with a message that stays short and clean, whatever the input", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue(),
        fc.constantFrom("key", "location", "model", "capacity"),
        async (value, field) => {
          fc.pre(!(field === "model" && typeof value === "string"));
          fc.pre(
            !(field === "capacity" && (value === null || (Array.isArray(value) && !value.length))),
          );
          const message = await refusedWith({ [field]: value });
          expect(message.length).toBeLessThan(2000);
          expect(message).not.toMatch(/\p{Cc}/u);
        },
      ),
    );
    expect((await refusedWith({ model: 1, capacity: Array(50_000).fill(1) })).length).toBeLessThan(
      200,
    );
    expect(
      (await refusedWith({ location: { region: "\u0000".repeat(100_000) } })).length,
    ).toBeLessThan(200);
  });
});
