import type { RunClock } from "../runtime/run-clock.ts";

/**
 * Why pools may be alive that have not had the chance to register; undefined once they have had it:
 * whoever is alive registers again within one lease of the start, or of a pause's end.
 */
export function freshReason(runClock: RunClock, leaseSecs: number): string | undefined {
  // Reading the clock first: that is what finds a pause.
  const nowMs = runClock.nowMs();
  const { resumedAtMs } = runClock;
  if (nowMs - resumedAtMs > leaseSecs * 1000) return undefined;
  const since = resumedAtMs === 0 ? "since the start" : "since the process was stopped or starved";
  return `less than one lease of ${leaseSecs} s has passed ${since}`;
}
