import type { Cancel } from "../../src/runtime/clock.ts";
import { FakeClock } from "./fake-clock.ts";

/** A fake clock that goes from timer to timer, so that what one sets off happens at its own time. */
export class SteppedClock extends FakeClock {
  readonly #dueAtMs = new Set<{ ms: number }>();

  /** Lets time pass, and with each timer lets everything happen that needs no time. */
  async run(ms: number): Promise<void> {
    const endMs = this.monotonicMs() + ms;
    await settle();
    for (;;) {
      const nextMs = Math.min(...[...this.#dueAtMs].map((due) => due.ms));
      if (nextMs > endMs) break;
      this.advance(Math.max(0, nextMs - this.monotonicMs()));
      await settle();
    }
    this.advance(Math.max(0, endMs - this.monotonicMs()));
    await settle();
  }

  override after(delayMs: number, callback: () => void): Cancel {
    const due = { ms: this.monotonicMs() + delayMs };
    this.#dueAtMs.add(due);
    const cancel = super.after(delayMs, () => {
      this.#dueAtMs.delete(due);
      callback();
    });
    return () => {
      this.#dueAtMs.delete(due);
      cancel();
    };
  }

  override every(periodMs: number, callback: () => void): Cancel {
    const due = { ms: this.monotonicMs() + periodMs };
    this.#dueAtMs.add(due);
    const cancel = super.every(periodMs, () => {
      due.ms = this.monotonicMs() + periodMs;
      callback();
    });
    return () => {
      this.#dueAtMs.delete(due);
      cancel();
    };
  }
}

/** Lets everything happen that needs no time: the event loop turns once all promises are settled. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
