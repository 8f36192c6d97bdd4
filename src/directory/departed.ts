import type { Departure, RegistrationFacts } from "../registrations/store.ts";
import type { Clock } from "../runtime/clock.ts";
import { limits } from "../runtime/limits.ts";

interface Entry {
  readonly leftAtMs: number;
  /** Undefined for a pool of which only relays were known. */
  readonly departure: Departure | undefined;
}

/**
 * The pools that have left of late, so that it can be told why: those of the last ten minutes, and of
 * these the last thousand. A pool is its sort key.
 */
export class Departed {
  readonly #clock: Clock;
  /** In the order in which they left. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A pool has left just now; without a departure where it was never registered. */
  add(id: string, departure?: Departure): void {
    this.#entries.delete(id);
    this.#entries.set(id, { leftAtMs: this.#clock.monotonicMs(), departure });
    this.#forget();
  }

  /** A pool is back; harmless where it had not left. */
  delete(id: string): void {
    this.#entries.delete(id);
  }

  /** The pools, those that left longest ago first. */
  ids(): Iterable<string> {
    this.#forget();
    return this.#entries.keys();
  }

  has(id: string): boolean {
    this.#forget();
    return this.#entries.has(id);
  }

  /** What is known of the registration that a pool had. */
  registrationOf(id: string): RegistrationFacts | undefined {
    const { departure, leftAtMs } = this.#entries.get(id) ?? {};
    if (departure === undefined || leftAtMs === undefined || !this.has(id)) return undefined;
    const elapsedMs = this.#clock.monotonicMs() - leftAtMs;
    const endedSecsAgo = Math.floor((departure.endedMsAgo + elapsedMs) / 1000);
    return {
      isLive: false,
      reasons: [`${departure.what} ${endedSecsAgo} s ago`],
      registeredMsAgo: departure.registeredMsAgo + elapsedMs,
      leaseLeftMs: 0,
      writtenIn: departure.writtenIn,
      disagreements: departure.disagreements,
    };
  }

  /** Drops those that left too long ago, and of too many the oldest. */
  #forget(): void {
    const sinceMs = this.#clock.monotonicMs() - limits.departedMs;
    for (const [id, { leftAtMs }] of this.#entries) {
      if (leftAtMs >= sinceMs && this.#entries.size <= limits.departedPools) return;
      this.#entries.delete(id);
    }
  }
}
