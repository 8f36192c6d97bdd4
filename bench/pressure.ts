import { existsSync, readFileSync } from "node:fs";

const PRESSURE = "/proc/pressure/cpu";

/** Seconds for which some program on this machine has waited for a CPU; 0 where nobody counts. */
export function pressureSecs(): number {
  if (!existsSync(PRESSURE)) return 0;
  const microseconds = /^some .*total=(\d+)$/m.exec(readFileSync(PRESSURE, "utf8"));
  return Number(microseconds?.[1]) / 1e6;
}
