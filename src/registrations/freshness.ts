import type { RunClock } from "../runtime/run-clock.ts";

/**
 * Whether every pool that is alive has had the chance to register: it does so again within one lease of
 * the start, or of a pause's end. `nowMs` is what the clock has just been read as: to read it is what
 * finds a pause.
 */
export function isFresh({ resumedAtMs }: RunClock, nowMs: number, leaseSecs: number): boolean {
  return nowMs - resumedAtMs > leaseSecs * 1000;
}

/** Why that is not so; undefined where it is. */
export function freshReason(
  runClock: RunClock,
  nowMs: number,
  leaseSecs: number,
): string | undefined {
  if (isFresh(runClock, nowMs, leaseSecs)) return undefined;
  const since =
    runClock.resumedAtMs === 0 ? "since the start" : "since the process was stopped or starved";
  return `less than one lease of ${leaseSecs} s has passed ${since}`;
}
