import { expect, test } from "bun:test";
import { Cooldown } from "../../src/runtime/cooldown.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("a warning may be given at once, and again a minute after it was given, not after it was tried", () => {
  const clock = new FakeClock();
  const cooldown = new Cooldown(clock);
  expect(cooldown.restart()).toBe(true);
  clock.advance(59_999);
  expect(cooldown.restart()).toBe(false);
  clock.advance(1);
  expect(cooldown.restart()).toBe(true);
  expect(cooldown.restart()).toBe(false);
});
