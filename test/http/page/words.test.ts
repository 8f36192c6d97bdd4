import { expect, test } from "bun:test";
import {
  ago,
  count,
  counted,
  duration,
  lasting,
  leftOutReason,
  milliseconds,
  timeOfDay,
} from "../../../src/http/page/client/words.ts";

test.each([
  [0, "0 s"],
  [0.9, "0 s"],
  [12.6, "12 s"],
  [59.99, "59 s"],
  [60, "1 min"],
  [187.2, "3 min 7 s"],
  [3_600, "1 h"],
  [3_601, "1 h"],
  [86_399, "23 h 59 min"],
  [273_900, "3 d 4 h"],
  [-1, "0 s"],
])("%d s is told as %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test("what is not known is told as a dash", () => {
  expect([ago(null), lasting(null), milliseconds(null), count(null)]).toEqual(Array(4).fill("–"));
});

test("numbers have their thousands apart, and things their plural", () => {
  expect(counted(0, "pool")).toBe("0 pools");
  expect(counted(1, "pool")).toBe("1 pool");
  expect(counted(10_000, "pool")).toBe("10,000 pools");
  expect(milliseconds(3.14)).toBe("3.1 ms");
  expect(milliseconds(1_234.5)).toBe("1,235 ms");
});

test("times are in UTC, as in the log", () => {
  expect(timeOfDay(new Date("2026-11-30T03:04:05.678Z"))).toBe("03:04:05 UTC");
});

test("a reason that the page does not know is shown as it is", () => {
  expect(leftOutReason("fqdn")).toBe("its addresses are names, not IP addresses");
  for (const reason of ["new-reason", "toString", "__proto__"]) {
    expect(leftOutReason(reason)).toBe(reason);
  }
});
