import type { Clock } from "./clock.ts";

/**
 * How long nothing is done after the work, in times of what it took: so it never takes more than a
 * fifth of the time, however often it is asked for.
 */
const REST = 4;
/** No longer than this, so that whoever waits for an answer is not cut off for being silent. */
const MOST_REST_MS = 2000;

/**
 * Work that costs something and that anybody may ask for. It is done once at a time, and all who ask
 * meanwhile share the next time, which begins after they have asked: what they get is never old.
 */
export class SharedWork<T> {
  readonly #clock: Clock;
  readonly #work: () => Promise<T>;
  /** The time that is yet to begin. */
  #next: Promise<T> | undefined;
  /** Resolves when it may. */
  #free: Promise<void> = Promise.resolve();

  constructor(clock: Clock, work: () => Promise<T>) {
    this.#clock = clock;
    this.#work = work;
  }

  /** What the work gives when it is done after this call. */
  ask(): Promise<T> {
    this.#next ??= this.#whenFree();
    return this.#next;
  }

  async #whenFree(): Promise<T> {
    await this.#free;
    this.#next = undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#free = promise;
    const beganAtMs = this.#clock.monotonicMs();
    try {
      return await this.#work();
    } finally {
      const tookMs = this.#clock.monotonicMs() - beganAtMs;
      this.#clock.after(Math.min(REST * tookMs, MOST_REST_MS), resolve);
    }
  }
}
