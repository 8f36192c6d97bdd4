import { expect, test } from "bun:test";
import { soakOptions } from "./options.ts";

test("a soak takes ten minutes and another seed each time, unless it is told", () => {
  expect(soakOptions([]).minutes).toBe(10);
  expect(soakOptions([]).seed).not.toBe(soakOptions([]).seed);
  expect(soakOptions(["--minutes", "0.5", "--seed=7"])).toEqual({ minutes: 0.5, seed: 7 });
});

test("a command line that is not right is refused with what is wrong", () => {
  const CASES: readonly (readonly [args: readonly string[], words: string])[] = [
    [["--minutes", "0"], "--minutes is to be from 0.1 to 1440"],
    [["--minutes", "1e3"], "--minutes is to be a number, not '1e3'"],
    [["--minutes="], "--minutes is to be a number, not ''"],
    [["--seed", "1.5"], "--seed is to be a number, not '1.5'"],
    [["--seed", "4294967296"], "--seed is to be at most 4294967295"],
    [["--seed"], "--seed"],
    [["--speed", "1"], "--speed"],
    [["now"], "now"],
  ];
  for (const [args, words] of CASES) expect(() => soakOptions(args)).toThrow(words);
});
