import { expect, test } from "bun:test";
import fc from "fast-check";
import { LineSplitter } from "../../src/kubernetes/lines.ts";

const encoder = new TextEncoder();

test("lines are the same wherever their bytes were split, in the middle of a character too", () => {
  const line = fc.string({ unit: "grapheme", maxLength: 12 }).map((s) => s.replaceAll("\n", ""));
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 6 }),
      line,
      fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
      (lines, rest, sizes) => {
        const bytes = encoder.encode(lines.map((each) => `${each}\n`).join("") + rest);
        const splitter = new LineSplitter(1000);
        const found: string[] = [];
        for (let at = 0; at < bytes.length; ) {
          const size = sizes.next().value ?? 1;
          found.push(...splitter.push(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(found).toEqual(lines);
        expect(splitter.take()).toBe(rest);
      },
    ),
  );
});

test("a line is bounded, however it comes", () => {
  const line = encoder.encode("123456789");
  expect([...new LineSplitter(9).push(encoder.encode("123456789\n"))]).toEqual(["123456789"]);
  expect(() => [...new LineSplitter(8).push(line)]).toThrow("a line is over 8 bytes");
  const splitter = new LineSplitter(8);
  expect([...splitter.push(line.subarray(0, 5))]).toEqual([]);
  expect(() => [...splitter.push(line.subarray(5))]).toThrow("a line is over 8 bytes");
});
