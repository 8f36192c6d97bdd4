import { expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { sortKey } from "../../../src/pools/pool.ts";
import {
  type Decoded,
  decode,
  encode,
  type Item,
} from "../../../src/registrations/dynamodb/item.ts";
import { ItemReader } from "../../../src/registrations/dynamodb/item-reader.ts";
import { anyRegistration } from "../../support/arbitraries.ts";

const NEXT = { pk: { S: "pool" }, sk: { S: 'the "Items":[ last' } };

/** The answer to a Query, written as DynamoDB writes it. */
function answer(items: readonly Item[], next?: Item): string {
  return JSON.stringify({ Count: items.length, Items: items, LastEvaluatedKey: next });
}

function item(name: string, renewedAtMs = 1_764_505_722_999, text = `{"name":"${name}"}`): Item {
  // Housekeeping is not asked for.
  const { expires_at: _, ...attributes } = encode(text, {
    renewedAtMs,
    leaseSecs: 15,
    writtenIn: "us-west-2",
  });
  return { sk: { S: name }, ...attributes };
}

/** What a whole read finds. */
function readAll(reader: ItemReader, answers: readonly string[]): Decoded[] {
  reader.begin();
  const items = answers.flatMap((text) => reader.page(text).items);
  reader.end();
  return items;
}

/** How many JSON texts a whole read parses, other than the answers' frames. */
function parsings(reader: ItemReader, answers: readonly string[]): number {
  const parse = spyOn(JSON, "parse");
  try {
    readAll(reader, answers);
    return parse.mock.calls.length - answers.length;
  } finally {
    parse.mockRestore();
  }
}

/** Values that no replica writes, and what they might be mistaken for. */
const oddValue = fc.oneof(
  fc.constantFrom<unknown>(
    { N: "1.7E12" },
    { N: "5" },
    { S: "5" },
    { S: '"renewed_at":{"N":"7"' },
    { S: '}},{"sk":{"S":"x"}}]' },
    { L: [{ M: { sk: { S: "x" } } }, { M: { renewed_at: { N: "7" } } }] },
    { M: { renewed_at: { N: "1764505722999" } } },
  ),
  fc.string().map((text) => ({ S: text })),
);
const anyItem = fc
  .tuple(
    anyRegistration,
    fc.record({ renewedAtMs: fc.nat(3), leaseSecs: fc.nat(2), writtenIn: fc.string() }),
    fc.dictionary(fc.constantFrom("registration", "renewed_at", "written_in", "Items"), oddValue, {
      maxKeys: 1,
    }),
    fc.boolean(),
  )
  .map(([registration, renewal, odd, isReversed]) => {
    const attributes = Object.entries({
      sk: { S: sortKey(registration.key) },
      ...encode(JSON.stringify(registration), renewal),
      ...odd,
    });
    return Object.fromEntries(isReversed ? attributes.toReversed() : attributes);
  });

test("whatever was read before, a read finds what parsing the answers would", () => {
  const anyTables = fc.array(anyItem, { minLength: 1, maxLength: 6 }).chain((items) =>
    fc.array(
      fc.record({
        // Most tables hold most items, renewed or as they were.
        items: fc.tuple(
          ...items.map((each) =>
            fc.oneof(
              { weight: 4, arbitrary: fc.constant([each]) },
              {
                weight: 3,
                arbitrary: fc.nat(9).map((n) => [{ ...each, renewed_at: { N: `${n}` } }]),
              },
              { weight: 1, arbitrary: fc.constant([]) },
              { weight: 1, arbitrary: anyItem.map((other) => [other, each]) },
              {
                weight: 1,
                arbitrary: anyItem.map((other) => [{ ...other, sk: each.sk ?? NEXT.sk }]),
              },
              { weight: 1, arbitrary: fc.nat(2).map((n) => [{ ...each, lease_s: { N: `${n}` } }]) },
            ),
          ),
        ),
        pageSize: fc.integer({ min: 1, max: 4 }),
        indent: fc.option(fc.constantFrom(1, "\t"), { freq: 5, nil: undefined }),
        isCutShort: fc.boolean(),
      }),
      { minLength: 2, maxLength: 5 },
    ),
  );
  fc.assert(
    fc.property(anyTables, (tables) => {
      const reader = new ItemReader();
      for (const { items, pageSize, indent, isCutShort } of tables) {
        const all = items.flat();
        reader.begin();
        for (let start = 0; start < all.length; start += pageSize) {
          const page = all.slice(start, start + pageSize);
          const next = start + pageSize < all.length ? NEXT : undefined;
          const text = JSON.stringify({ LastEvaluatedKey: next, Items: page }, null, indent);
          expect(reader.page(text)).toEqual({ items: page.map((each) => decode(each)), next });
        }
        if (!isCutShort) reader.end();
      }
    }),
    { numRuns: 300 },
  );
});

test("an item that says the same is not parsed, nor one that was only renewed", () => {
  const reader = new ItemReader();
  const first = [answer([item("a"), item("b")], NEXT), answer([item("c")])];
  expect(parsings(reader, first)).toBe(3);
  expect(parsings(reader, first)).toBe(0);
  // Pages may be divided elsewhere.
  const renewed = [answer([item("a", 5)], NEXT), answer([item("b", 6), item("c", 7)])];
  expect(parsings(reader, renewed)).toBe(0);
  expect(readAll(reader, renewed).map(({ renewedAtMs }) => renewedAtMs)).toEqual([5, 6, 7]);
});

test("of an item that says the same, the very same strings are handed on", () => {
  const reader = new ItemReader();
  const [before] = readAll(reader, [answer([item("a")])]);
  expect(readAll(reader, [answer([item("a")])])[0]).toBe(before as Decoded);
});

test("where items come, go or change, only those are parsed, and what stands behind a gap", () => {
  const reader = new ItemReader();
  const list = (...names: readonly string[]) => [answer(names.map((name) => item(name)))];
  readAll(reader, list("a", "b", "d", "e", "f"));
  // c is new.
  expect(parsings(reader, list("a", "b", "c", "d", "e", "f"))).toBe(1);
  expect(parsings(reader, list("a", "b", "c", "d", "e", "f"))).toBe(0);
  // b and c are gone; what was known of d is only found by its key.
  expect(parsings(reader, list("a", "d", "e", "f"))).toBe(1);
  expect(parsings(reader, list("a", "d", "e", "f"))).toBe(0);
  // e has changed.
  const changed = [answer([item("a"), item("d"), item("e", 1, "{}"), item("f")])];
  expect(parsings(reader, changed)).toBe(1);
  expect(parsings(reader, changed)).toBe(0);
  // One takes the place of another: the one is found by its key from then on.
  expect(parsings(reader, list("a", "d", "g", "f"))).toBe(2);
  expect(parsings(reader, list("g", "f"))).toBe(1);
  expect(parsings(reader, list("a", "d", "e", "f"))).toBe(4);
  // The last ones are gone, and back again.
  expect(parsings(reader, list("a"))).toBe(0);
  expect(parsings(reader, list("a", "d"))).toBe(1);
});

test("a read that breaks off leaves what the next one expects", () => {
  const reader = new ItemReader();
  const [one, other] = [answer([item("a"), item("b")], NEXT), answer([item("c")])];
  readAll(reader, [one, other]);
  reader.begin();
  reader.page(one);
  expect(parsings(reader, [one, other])).toBe(0);
});

test("only the digits of when an item was renewed may differ, however odd the item is", () => {
  const rest =
    '"sk":{"S":"a"},"registration":{"S":"{}"},"lease_s":{"N":"15"},"written_in":{"S":"x"}';
  const time = (N: string) => `"renewed_at":{"N":"${N}"}`;
  for (const [before, after] of [
    [`{${time("1")},${rest}}`, `{${time("2E3")},${rest}}`],
    [`{${time("1")},${rest}}`, `{${time("five")},${rest}}`],
    [`{${time("1")},${rest}}`, `{${time("1\\u0030")},${rest}}`],
    [`{${time("1")},${rest}}`, `{${time("1")},${rest.replace("15", "16")}}`],
    // Not the item's own, whose digits stay.
    [
      `{"old":{"M":{${time("1")}}},${time("1")},${rest}}`,
      `{"old":{"M":{${time("2")}}},${time("1")},${rest}}`,
    ],
    [
      `{"old":{"M":{${time("2")}}},"renewed_at": {"N":"1"},${rest}}`,
      `{"old":{"M":{${time("3")}}},"renewed_at": {"N":"1"},${rest}}`,
    ],
    [`{"old":{"M":{${time("2")}}},${rest}}`, `{"old":{"M":{${time("3")}}},${rest}}`],
  ]) {
    const reader = new ItemReader();
    readAll(reader, [`{"Items":[${before}]}`]);
    const read = readAll(reader, [`{"Items":[${after}]}`]);
    expect(read).toEqual([decode(JSON.parse(after ?? ""))]);
  }
});

test("an answer without items has none", () => {
  for (const text of ["{}", '{"Count":0,"Items":[]}', '{"Items": [ ]}']) {
    expect(new ItemReader().page(text)).toEqual({ items: [], next: undefined });
  }
});

test("an answer that is not JSON is refused", () => {
  const reader = new ItemReader();
  const whole = answer([item("a"), item("b")]);
  readAll(reader, [whole]);
  for (let length = 0; length < whole.length; length += 1) {
    reader.begin();
    expect(() => reader.page(whole.slice(0, length))).toThrow(SyntaxError);
  }
  reader.begin();
  expect(() => reader.page(whole.replace("}},{", "}};{"))).toThrow(SyntaxError);
});
