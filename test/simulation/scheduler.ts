import { drainMicrotasks } from "bun:jsc";
import type { Cancel } from "../../src/runtime/clock.ts";

interface Event {
  readonly atMs: number;
  readonly number: number;
  action: (() => void) | undefined;
}

/**
 * True time, and all that is going to happen. One event is run at a time, with everything that it sets
 * off in promises; nothing waits for a real timer, so a run is a function of its events.
 */
export class Scheduler {
  /** Milliseconds since the run began: whole ones. */
  nowMs = 0;
  /** Called after each event. */
  afterEach: () => void = () => {};
  steps = 0;
  readonly #heap: Event[] = [];
  #events = 0;
  #isStopped = false;

  /** Runs an action at a moment, or now where that has passed; what is due together, in order. */
  at(ms: number, action: () => void): Cancel {
    this.#events += 1;
    const event: Event = {
      atMs: Math.max(Math.ceil(ms), this.nowMs),
      number: this.#events,
      action,
    };
    if (!this.#isStopped) this.#push(event);
    return () => {
      event.action = undefined;
    };
  }

  in(ms: number, action: () => void): Cancel {
    return this.at(this.nowMs + ms, action);
  }

  /** Lets nothing more happen. */
  stop(): void {
    this.#heap.length = 0;
    this.#isStopped = true;
  }

  /** Lets time pass up to a moment, and all happen that is due by then. */
  runUntil(endMs: number): void {
    for (let event = this.#heap[0]; event && event.atMs <= endMs; event = this.#heap[0]) {
      this.#pop();
      const { action } = event;
      if (action === undefined) continue;
      this.nowMs = event.atMs;
      this.steps += 1;
      action();
      drainMicrotasks();
      this.afterEach();
    }
    if (!this.#isStopped) this.nowMs = endMs;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let place = heap.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, event)) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      let below = left;
      if (right !== undefined && left !== undefined && isBefore(right, left)) {
        below = right;
        child += 1;
      }
      if (below === undefined || isBefore(last, below)) break;
      heap[place] = below;
      place = child;
    }
    heap[place] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);
}
