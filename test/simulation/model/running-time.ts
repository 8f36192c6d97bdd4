import type { Clock } from "../../../src/runtime/clock.ts";

/** A gap in the beat that is longer than this counts as a pause. */
const PAUSE_MS = 1000;

/** The time in which a process was running, as section "Time" of the reference has it. */
export class RunningTime {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #beatAtMs: number;
  #pausedMs = 0;
  #wokeAtMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.#beatAtMs = this.#startedAtMs;
  }

  /** The process has shown that it runs. */
  beat(): void {
    this.look();
    this.#beatAtMs = this.#clock.monotonicMs();
  }

  look(): void {
    const monotonicMs = this.#clock.monotonicMs();
    const gapMs = monotonicMs - this.#beatAtMs;
    if (gapMs <= PAUSE_MS) return;
    this.#pausedMs += gapMs;
    this.#beatAtMs = monotonicMs;
    this.#wokeAtMs = this.nowMs();
  }

  /** Since the start, less all pauses. */
  nowMs(): number {
    return this.#clock.monotonicMs() - this.#startedAtMs - this.#pausedMs;
  }

  /** All pauses so far. */
  get pausedMs(): number {
    return this.#pausedMs;
  }

  /** How long it has to go on until `hasRunFor` says so. */
  leftOf(ms: number): number {
    return ms - (this.nowMs() - this.#wokeAtMs);
  }

  /** Whether the process has been running for longer than this since its start and its last pause. */
  hasRunFor(ms: number): boolean {
    return this.leftOf(ms) < 0;
  }
}
