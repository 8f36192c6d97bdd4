import { expect, test } from "bun:test";
import fc from "fast-check";
import { RecentTexts } from "../../src/pools/recent-texts.ts";

test("a text is known by exactly what it says", () => {
  const recent = new RecentTexts<number>(100);
  recent.set("abc", 1);
  expect(recent.get("abc")).toBe(1);
  expect(recent.get("abd")).toBeUndefined();
});

test("what is asked for stays, and what is not goes, within the bound", () => {
  const recent = new RecentTexts<number>(100);
  recent.set("kept", 0);
  for (let n = 100; n < 300; n += 1) {
    recent.set(`text ${n}`, n);
    expect(recent.get("kept")).toBe(0);
  }
  expect(recent.get("text 299")).toBe(299);
  expect(recent.get("text 100")).toBeUndefined();
});

test("it never holds more than the bound, and never answers for another text", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 30 }), { maxLength: 100 }), (texts) => {
      const recent = new RecentTexts<string>(60);
      const asked = new Set<string>();
      for (const text of texts) {
        const known = recent.get(text);
        if (known === undefined) recent.set(text, `value of ${text}`);
        else expect(known).toBe(`value of ${text}`);
        asked.add(text);
      }
      const held = [...asked].filter((text) => recent.get(text) !== undefined);
      expect(held.join("").length).toBeLessThanOrEqual(60);
    }),
  );
});
