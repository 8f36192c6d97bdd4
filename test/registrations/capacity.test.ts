import { expect, test } from "bun:test";
import { Capacity } from "../../src/registrations/capacity.ts";
import { limits } from "../../src/runtime/limits.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { recordedLog } from "../support/recorded-log.ts";

function make() {
  const { log, lines } = recordedLog();
  const capacity = new Capacity(new FakeClock(), log);
  return {
    lines,
    hold(pools: number, bytesEach = 1) {
      for (let n = 0; n < pools; n += 1) capacity.hold(undefined, bytesEach);
    },
    release(pools: number, bytesEach = 1) {
      for (let n = 0; n < pools; n += 1) capacity.release(bytesEach);
    },
  };
}

test("a warning comes at 80 % of the live pools, before any is refused, and once", () => {
  const { lines, hold } = make();
  hold(limits.livePools * 0.8 - 1);
  expect(lines).toEqual([]);
  hold(1);
  expect(lines).toEqual([
    {
      level: "warn",
      message: "registrations come near a limit; look who registers so much",
      fields: { percent: 80, pools: 80_000, bytes: 80_000 },
    },
  ]);
  hold(limits.livePools * 0.2);
  expect(lines).toHaveLength(1);
});

test("a warning comes at 80 % of the bytes, however few pools they are", () => {
  const { lines, hold } = make();
  hold(8, Math.ceil(limits.registrationBytes / 10));
  expect(lines.map(({ fields }) => fields.percent)).toEqual([80]);
});

test("the warning comes again only after the pools were below 70 %", () => {
  const { lines, hold, release } = make();
  hold(limits.livePools * 0.8);
  release(limits.livePools * 0.1);
  hold(limits.livePools * 0.1);
  expect(lines).toHaveLength(1);
  release(limits.livePools * 0.1 + 1);
  hold(limits.livePools * 0.1 + 1);
  expect(lines).toHaveLength(2);
});
