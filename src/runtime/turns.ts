import type { Clock } from "./clock.ts";

/** Splits long work into turns, so that whoever waits for the event loop gets one in between. */
export class Turns {
  readonly #clock: Clock;
  readonly #steps: number;
  #left: number;

  /** A turn lasts for so many steps. */
  constructor(clock: Clock, steps: number) {
    this.#clock = clock;
    this.#steps = steps;
    this.#left = steps;
  }

  /** Counts steps that were made. Returns whether the turn is over: then `next` is to be awaited. */
  spend(steps: number): boolean {
    this.#left -= steps;
    return this.#left <= 0;
  }

  /** Resolves when everybody else has had a turn. */
  next(): Promise<void> {
    this.#left = this.#steps;
    return new Promise((resolve) => {
      this.#clock.after(0, resolve);
    });
  }
}

/** How many items are sorted without a break, and about how often each is compared meanwhile. */
const RUN_ITEMS = 500;
const RUN_COMPARISONS = 10;

/** Sorts as `toSorted` does, in turns of which a step is one comparison. */
export async function sortInTurns<T extends NonNullable<unknown>>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  turns: Turns,
): Promise<T[]> {
  let runs: T[][] = [];
  for (let at = 0; at < items.length; at += RUN_ITEMS) {
    runs.push(items.slice(at, at + RUN_ITEMS).sort(compare));
    if (turns.spend(RUN_ITEMS * RUN_COMPARISONS)) await turns.next();
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? [], compare, turns));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

async function merge<T extends NonNullable<unknown>>(
  left: readonly T[],
  right: readonly T[],
  compare: (a: T, b: T) => number,
  turns: Turns,
): Promise<T[]> {
  const merged: T[] = [];
  for (let [atLeft, atRight] = [0, 0]; ; ) {
    const [a, b] = [left[atLeft], right[atRight]];
    if (a !== undefined && (b === undefined || compare(a, b) <= 0)) {
      merged.push(a);
      atLeft += 1;
    } else if (b !== undefined) {
      merged.push(b);
      atRight += 1;
    } else {
      return merged;
    }
    if (turns.spend(1)) await turns.next();
  }
}
