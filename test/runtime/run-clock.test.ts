import { expect, test } from "bun:test";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { FakeClock } from "../support/fake-clock.ts";

function setUp() {
  const clock = new FakeClock();
  const pauses: number[] = [];
  let beats = 0;
  const runClock = new RunClock(clock, (pausedMs) => pauses.push(pausedMs));
  const stop = runClock.start(() => {
    beats += 1;
  });
  return { clock, pauses, runClock, stop, beats: () => beats };
}

test("time in which the process runs is counted to the millisecond", () => {
  const { clock, runClock, pauses } = setUp();
  clock.advance(3_601_001);
  expect(runClock.nowMs()).toBe(3_601_001);
  expect(pauses).toEqual([]);
});

test("time in which the process could not run is left out, when a request is first to see it", () => {
  const { clock, runClock, pauses } = setUp();
  clock.advance(1000);
  clock.pause(60_000);
  expect(runClock.nowMs()).toBe(1000);
  clock.wake();
  expect(runClock.nowMs()).toBe(1000);
  expect(pauses).toEqual([60_000]);
});

test("time in which the process could not run is left out, when a timer is first to see it", () => {
  const { clock, runClock, pauses } = setUp();
  clock.advance(1000);
  clock.pause(60_000);
  clock.wake();
  expect(runClock.nowMs()).toBe(1000);
  expect(pauses).toEqual([60_000]);
});

test("a gap of exactly one second is no pause, and a millisecond more is", () => {
  const { clock, runClock } = setUp();
  clock.pause(1000);
  expect(runClock.nowMs()).toBe(1000);
  clock.pause(1);
  expect(runClock.nowMs()).toBe(0);
  expect(runClock.resumedAtMs).toBe(0);
});

test("the whole gap since the last beat is left out, what ran of it included", () => {
  const { clock, runClock, pauses } = setUp();
  clock.advance(500);
  clock.pause(200);
  expect(runClock.nowMs()).toBe(700);
  clock.pause(5000);
  expect(runClock.nowMs()).toBe(500);
  expect(pauses).toEqual([5200]);
});

test("pauses one after another are each left out", () => {
  const { clock, runClock, pauses } = setUp();
  for (let round = 1; round <= 3; round += 1) {
    clock.pause(2000);
    expect(runClock.nowMs()).toBe((round - 1) * 250);
    expect(runClock.resumedAtMs).toBe((round - 1) * 250);
    clock.wake();
    clock.advance(250);
  }
  expect(pauses).toEqual([2000, 2000, 2000]);
});

test("setting the wall clock changes nothing", () => {
  const { clock, runClock, pauses } = setUp();
  clock.advance(1000);
  clock.setWall(0);
  expect(runClock.nowMs()).toBe(1000);
  clock.setWall(Date.UTC(2100, 0, 1));
  clock.advance(1000);
  expect(runClock.nowMs()).toBe(2000);
  expect(pauses).toEqual([]);
});

test("it beats every 250 ms until it is stopped", () => {
  const { clock, stop, beats } = setUp();
  clock.advance(1000);
  expect(beats()).toBe(4);
  stop();
  clock.advance(1000);
  expect(beats()).toBe(4);
  expect(clock.timers).toBe(0);
});

test("pauses are counted, and their lengths summed, by whoever asks first", () => {
  const { clock, runClock } = setUp();
  expect([runClock.pauses, runClock.pausedMs()]).toEqual([0, 0]);
  for (const ms of [2000, 1500]) {
    clock.pause(ms);
    clock.wake();
    clock.advance(1000);
  }
  expect([runClock.pausedMs(), runClock.pauses]).toEqual([3500, 2]);
});
