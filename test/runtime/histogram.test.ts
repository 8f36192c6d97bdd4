import { expect, test } from "bun:test";
import fc from "fast-check";
import { BOUNDS_SECS, Histogram } from "../../src/runtime/histogram.ts";

test("a bucket counts what took no longer than its bound", () => {
  const anyMs = fc.oneof(
    fc.constantFrom(...BOUNDS_SECS.map((bound) => bound * 1000)),
    fc.double({ min: 0, max: 20_000, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(anyMs), (times) => {
      const histogram = new Histogram();
      for (const ms of times) histogram.observe(ms);
      const upTo = (bound: number) => times.filter((ms) => ms / 1000 <= bound).length;
      expect(histogram.cumulativeCounts()).toEqual([...BOUNDS_SECS.map(upTo), times.length]);
      expect(histogram.sumSecs).toBeCloseTo(
        times.reduce((sum, ms) => sum + ms / 1000, 0),
        6,
      );
    }),
  );
});

test("the bounds rise", () => {
  expect([...BOUNDS_SECS].sort((a, b) => a - b)).toEqual([...BOUNDS_SECS]);
  expect(new Set(BOUNDS_SECS).size).toBe(BOUNDS_SECS.length);
});
