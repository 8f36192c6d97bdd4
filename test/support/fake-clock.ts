import type { Cancel, Clock } from "../../src/runtime/clock.ts";

interface Timer {
  atMs: number;
  readonly periodMs: number | undefined;
  readonly callback: () => void;
}

/** Time that moves only when a test says so. */
export class FakeClock implements Clock {
  readonly #timers = new Set<Timer>();
  #monotonicMs = 5_000;
  #wallMs = Date.UTC(2026, 0, 1);

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  /** The middle of every spread, unless a test says otherwise. */
  random(): number {
    return 0.5;
  }

  after(delayMs: number, callback: () => void): Cancel {
    return this.#add({ atMs: this.#monotonicMs + delayMs, periodMs: undefined, callback });
  }

  every(periodMs: number, callback: () => void): Cancel {
    return this.#add({ atMs: this.#monotonicMs + periodMs, periodMs, callback });
  }

  #add(timer: Timer): Cancel {
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** How many timers are waiting. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Lets time pass while the process runs: each timer is called when it is due. */
  advance(ms: number): void {
    const endMs = this.#monotonicMs + ms;
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.pause(Math.max(0, next.atMs - this.#monotonicMs));
      this.#run(next);
    }
    // A callback may have taken time of its own.
    this.pause(Math.max(0, endMs - this.#monotonicMs));
  }

  /** Lets time pass while the process can't run: what is due stays so until `wake`. */
  pause(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  /** Calls what became due in a pause, once each, as an event loop does. */
  wake(): void {
    for (const timer of [...this.#timers]) {
      if (timer.atMs <= this.#monotonicMs) this.#run(timer);
    }
  }

  /** Sets the wall clock, as an administrator or NTP would. */
  setWall(ms: number): void {
    this.#wallMs = ms;
  }

  #run(timer: Timer): void {
    if (timer.periodMs === undefined) this.#timers.delete(timer);
    else timer.atMs = this.#monotonicMs + timer.periodMs;
    timer.callback();
  }
}
