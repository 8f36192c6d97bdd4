/**
 * Choices that follow from a seed. Each part of the soak has a stream of its own, so that what it chooses
 * does not depend on how the machine lets the others run.
 */
export class Random {
  #state: number;

  constructor(seed: number, stream: string) {
    this.#state = Bun.hash.xxHash32(`${seed} ${stream}`);
  }

  /** From 0 to below 1, by Mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  between(least: number, most: number): number {
    return least + (most - least) * this.next();
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @throws Error where there is nothing to pick from */
  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }

  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, at: this.next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item);
  }
}
