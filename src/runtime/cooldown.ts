import type { Clock } from "./clock.ts";
import { limits } from "./limits.ts";

/** Keeps a warning from being repeated more often than once a minute. */
export class Cooldown {
  readonly #clock: Clock;
  #startedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the warning may be given now; where it may, the next one has to wait. */
  restart(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#startedAtMs < limits.warningEveryMs) return false;
    this.#startedAtMs = nowMs;
    return true;
  }
}
