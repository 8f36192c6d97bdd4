import { type Cancel, type Clock, DeadlineError } from "../runtime/clock.ts";
import { limits } from "../runtime/limits.ts";

/** How long a process that could not run has, to read what came meanwhile. */
const CATCH_UP_MS = 5000;

/**
 * Aborts work on which nothing has been heard for too long. For one piece of work each.
 *
 * A timer that is late shows that the process could not run: then what should have been heard may
 * wait to be read, and gets its chance.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #allowedMs = 0;
  #heardAtMs: number;
  #dueAtMs = 0;
  #cancelTimer: Cancel = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#heardAtMs = clock.monotonicMs();
  }

  /** When something was last heard, on the monotonic clock. */
  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  /** From now on, something has to be heard every `allowedMs`. */
  expect(allowedMs: number): void {
    this.#allowedMs = allowedMs;
    this.heard();
    this.#lookIn(allowedMs);
  }

  /** Costs no timer, since there may be thousands of events a second. */
  heard(): void {
    this.#heardAtMs = this.#clock.monotonicMs();
  }

  /**
   * What `action` gives. Rejects with the signal's reason once that is aborted, whether or not the
   * action heeds it: a DeadlineError where nothing was heard for too long.
   */
  async guard<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#controller;
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    try {
      return await Promise.race([action(signal), aborted]);
    } finally {
      this.#cancelTimer();
    }
  }

  /** Aborts the work at once. */
  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  #lookIn(ms: number): void {
    this.#cancelTimer();
    this.#dueAtMs = this.#clock.monotonicMs() + ms;
    this.#cancelTimer = this.#clock.after(ms, () => this.#look());
  }

  #look(): void {
    const nowMs = this.#clock.monotonicMs();
    const leftMs = this.#heardAtMs + this.#allowedMs - nowMs;
    if (leftMs > 0) this.#lookIn(leftMs);
    else if (nowMs - this.#dueAtMs > limits.pauseMs) this.#lookIn(CATCH_UP_MS);
    else this.abort(new DeadlineError(`nothing was heard for ${this.#allowedMs / 1000} s`));
  }
}
