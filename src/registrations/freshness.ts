import type { RunClock } from "../runtime/run-clock.ts";

/**
 * Why pools may be alive that have not had the chance to register; undefined once they have had it:
 * whoever is alive registers again within one lease of the start, or of a pause's end. `nowMs` is what
 * the clock has just been read as: to read it is what finds a pause.
 */
export function freshReason(
  { resumedAtMs }: RunClock,
  nowMs: number,
  leaseSecs: number,
): string | undefined {
  if (nowMs - resumedAtMs > leaseSecs * 1000) return undefined;
  const since = resumedAtMs === 0 ? "since the start" : "since the process was stopped or starved";
  return `less than one lease of ${leaseSecs} s has passed ${since}`;
}
