import type { Cancel, Clock } from "./clock.ts";
import { limits } from "./limits.ts";

/**
 * A monotonic clock that stands still while the process can't run (SIGSTOP, a frozen VM, a starved
 * CPU). Leases are counted on it, so no pool loses its lease for want of heartbeats that this
 * process was not there to hear.
 *
 * A pause is a gap of over a second in a beat of 250 ms, and the whole gap is left out. Whoever
 * reads the clock first after the gap finds it, a timer or a request: a queue of requests may well
 * be served before the timer that is late.
 */
export class RunClock {
  readonly #clock: Clock;
  readonly #onPause: (pausedMs: number) => void;
  readonly #startedAtMs: number;
  #beatAtMs: number;
  #pauses = 0;
  #pausedMs = 0;
  #resumedAtMs = 0;

  constructor(clock: Clock, onPause: (pausedMs: number) => void) {
    this.#clock = clock;
    this.#onPause = onPause;
    this.#startedAtMs = clock.monotonicMs();
    this.#beatAtMs = this.#startedAtMs;
  }

  /** Milliseconds that this process has been running since the clock was made. */
  nowMs(): number {
    const monotonicMs = this.#clock.monotonicMs();
    const gapMs = monotonicMs - this.#beatAtMs;
    if (gapMs > limits.pauseMs) {
      this.#beatAtMs = monotonicMs;
      this.#pauses += 1;
      this.#pausedMs += gapMs;
      this.#resumedAtMs = monotonicMs - this.#startedAtMs - this.#pausedMs;
      this.#onPause(gapMs);
    }
    return monotonicMs - this.#startedAtMs - this.#pausedMs;
  }

  /** How many pauses there were so far. */
  get pauses(): number {
    return this.#pauses;
  }

  /** How long all pauses so far were, together. */
  pausedMs(): number {
    this.nowMs();
    return this.#pausedMs;
  }

  /** When the last pause ended, on this clock; 0, the start, where there was none. */
  get resumedAtMs(): number {
    return this.#resumedAtMs;
  }

  /** Starts the beat, and calls `onBeat` with each. */
  start(onBeat: () => void): Cancel {
    return this.#clock.every(limits.beatMs, () => {
      this.nowMs();
      this.#beatAtMs = this.#clock.monotonicMs();
      onBeat();
    });
  }
}
