import type { Registration } from "../../../src/pools/pool.ts";
import type { Random } from "../random.ts";

/** What a store should hold, worked out anew from the rules of the reference at each question. */
export interface StoreModel {
  /** The process has shown that it runs. */
  beat(): void;
  /** The live pools: their registrations as JSON, by sort key. */
  live(): Map<string, string>;
  isReady(): boolean;
  isComplete(): boolean;
  /** How much longer than they were granted leases may last, for the pauses of the process. */
  pausedMs(): number;
  /** A heartbeat came in. What is returned hears how it was answered. */
  register(id: string, registration: Registration): Registering;
  /** A moment, of those at which something is so for the last time; in true time, as of now. */
  lastMoment(random: Random): number;
}

export interface Registering {
  acknowledged(): void;
}

/** The members of a registration, whatever the order of its lists. */
export function membersOf(registration: Registration): string {
  const sorted = (list: readonly unknown[]) => list.map((item) => JSON.stringify(item)).sort();
  return JSON.stringify({
    ...registration,
    capabilities: sorted(registration.capabilities),
    frontends: sorted(registration.frontends),
    capacity: sorted(registration.capacity),
  });
}
