import { expect, test } from "bun:test";
import fc from "fast-check";
import { isBlank, oneLine, printableJson, quoted } from "../../src/runtime/text.ts";

test("whatever comes in, one line comes out: bounded, printable and well-formed", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc.integer({ min: 1, max: 80 }),
      (text, max) => {
        const line = oneLine(text, max);
        expect(line.length).toBeLessThanOrEqual(max);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(line.isWellFormed()).toBe(true);
      },
    ),
  );
});

test("plain text stays as it is, and what is cut ends with an ellipsis", () => {
  expect(oneLine("Zürich 東京", 20)).toBe("Zürich 東京");
  expect(oneLine("abcdef", 6)).toBe("abcdef");
  expect(oneLine("abcdefg", 6)).toBe("abcde…");
});

test("a line feed, an escape and a right-to-left override are shown by their numbers", () => {
  expect(oneLine("a\nb\u001bc\u202ed", 80)).toBe("a\\u{a}b\\u{1b}c\\u{202e}d");
});

test("a lone surrogate is shown by its number", () => {
  expect(oneLine("a\ud800b", 80)).toBe("a\\u{d800}b");
});

test("JSON means the same when what could break a line or turn it around is escaped", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const json = printableJson({ text });
      expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      expect(JSON.parse(json)).toEqual({ text });
    }),
  );
  expect(printableJson("a\u2028b\u202ec\u009bd\u{e0041}")).toBe(
    '"a\\u2028b\\u202ec\\u009bd\\udb40\\udc41"',
  );
});

test("what a user typed is repeated between quotes, cut short", () => {
  expect(quoted("x")).toBe("'x'");
  expect(quoted("y".repeat(1000)).length).toBeLessThan(70);
});

test("blank is nothing, or nothing but Unicode white space", () => {
  for (const blank of ["", " ", "\u00a0", "\u3000 \u2028"]) expect(isBlank(blank)).toBe(true);
  for (const seen of ["a", " a ", "\u200b", "\ufeff"]) expect(isBlank(seen)).toBe(false);
});
