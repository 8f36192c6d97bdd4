import { expect, test } from "bun:test";
import { preferredWaitSecs } from "../../src/http/prefer.ts";

const waitOf = (...lines: string[]) =>
  preferredWaitSecs(new Headers(lines.map((line): [string, string] => ["Prefer", line])));

test.each([
  ["wait=10", 10],
  ["WAIT=10", 10],
  ["Wait = 10", 10],
  ["wait\t=\t10", 10],
  ['wait="10"', 10],
  ['wait="1\\0"', 10],
  ["wait=007", 7],
  ["wait=0", 0],
  ["wait=10; foo", 10],
  ['wait=10 ; foo="a, wait=9"; bar=', 10],
  ["respond-async, wait=10", 10],
  [", ,wait=10,", 10],
  ['foo="wait=9, \\", wait=8", wait=10', 10],
  ["foo; wait=9, wait=10", 10],
  ["foo=bar; wait=9", undefined],
  ["awaits=9", undefined],
  ["return=minimal", undefined],
  ["", undefined],
])("%j asks for a wait of %p s", (header, secs) => {
  expect(waitOf(header)).toBe(secs);
});

test("however large a number is, it is one", () => {
  expect(waitOf(`wait=${"9".repeat(1000)}`)).toBe(Number.POSITIVE_INFINITY);
});

test.each([
  "wait",
  "wait=",
  'wait=""',
  "wait=soon",
  "wait=-1",
  "wait=+1",
  "wait=1.5",
  "wait=1e1",
  "wait=0x1",
  "wait='1'",
])("%j asks for no wait, nor does a repetition", (header) => {
  expect(waitOf(header)).toBeUndefined();
  expect(waitOf(`${header}, wait=5`)).toBeUndefined();
});

test.each(["wait=1 2", "wait=1=2", "wait 1", "=1", "@wait=1", 'wait="1"2', "(comment) wait=1"])(
  "%j is malformed, and as if it weren't there",
  (header) => {
    expect(waitOf(header)).toBeUndefined();
    expect(waitOf(`${header}, wait=5`)).toBe(5);
  },
);

test("a quote that never ends takes all that follows", () => {
  expect(waitOf('foo="a, wait=5')).toBeUndefined();
  expect(waitOf('wait="5, wait=5')).toBeUndefined();
  expect(waitOf('wait=4, foo="a, wait=5')).toBe(4);
});

test("the first of repeated ones counts, over all lines of the header", () => {
  expect(waitOf("wait=4, wait=5")).toBe(4);
  expect(waitOf("respond-async", "wait=4", "wait=5")).toBe(4);
  expect(waitOf()).toBeUndefined();
});

test("what is long takes no longer than it is", () => {
  for (const text of ['"', '"\\', "wait=", ", ", '="a"', "; ", " ", "\\"]) {
    for (const start of ["foo", "foo=", "foo=a"]) {
      // As much as the server lets through, and so often that a square of it would take minutes.
      const header = `${start}${text.repeat(16_384 / text.length)}@`;
      for (let time = 0; time < 200; time += 1) expect(waitOf(header)).toBeUndefined();
    }
  }
}, 30_000);
