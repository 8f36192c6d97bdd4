import { expect, test } from "bun:test";
import { Exposition } from "../../src/http/exposition.ts";
import { Histogram } from "../../src/runtime/histogram.ts";

test("metrics are text in the format 0.0.4", () => {
  const out = new Exposition();
  out.gauge("one", "Without labels.", 1.5);
  out.counter("two_total", "With labels.", [
    [{ a: "x", b: "y" }, 2],
    [{ a: "z", b: "" }, 0],
  ]);
  out.counter("three_total", "Without series.", []);
  expect(out.toString()).toBe(
    [
      "# HELP one Without labels.",
      "# TYPE one gauge",
      "one 1.5",
      "# HELP two_total With labels.",
      "# TYPE two_total counter",
      'two_total{a="x",b="y"} 2',
      'two_total{a="z",b=""} 0',
      "# HELP three_total Without series.",
      "# TYPE three_total counter",
      "",
    ].join("\n"),
  );
});

test("a histogram has a bucket for each bound and one for all, a sum and a count", () => {
  const histogram = new Histogram();
  for (const ms of [0.25, 0.75, 60_000]) histogram.observe(ms);
  const out = new Exposition();
  out.histogram("took_seconds", "How long.", [[{ route: "/" }, histogram]]);
  const lines = out.toString().split("\n");
  expect(lines.slice(0, 5)).toEqual([
    "# HELP took_seconds How long.",
    "# TYPE took_seconds histogram",
    'took_seconds_bucket{route="/",le="0.0005"} 1',
    'took_seconds_bucket{route="/",le="0.001"} 2',
    'took_seconds_bucket{route="/",le="0.0025"} 2',
  ]);
  expect(lines.slice(-5)).toEqual([
    'took_seconds_bucket{route="/",le="10"} 2',
    'took_seconds_bucket{route="/",le="+Inf"} 3',
    'took_seconds_sum{route="/"} 60.001',
    'took_seconds_count{route="/"} 3',
    "",
  ]);
});
