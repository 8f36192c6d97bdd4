import { availableParallelism } from "node:os";

/**
 * Under load, the server and the load generator have a core each. Left to the scheduler, they share
 * one for a while now and then, which moves the figures by half.
 */
export const LOAD_CORE = 0;
export const SERVER_CORE = 1;

/** The command with its process kept on one core, where there are two and a way to do it. */
export function pinned(core: number, command: string[]): string[] {
  const taskset = Bun.which("taskset");
  if (taskset === null || availableParallelism() < 2) return command;
  return [taskset, "--cpu-list", `${core}`, ...command];
}
