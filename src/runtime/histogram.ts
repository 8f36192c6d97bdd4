/** The upper bounds of the buckets, from a list that is ready to a table that hardly answers. */
export const BOUNDS_SECS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;

/** How long things took: how many of them up to each bound, and all of them together. */
export class Histogram {
  /** One for each bound, and one for what took longer than the last. */
  readonly #counts = new Float64Array(BOUNDS_SECS.length + 1);
  #sumMs = 0;

  observe(tookMs: number): void {
    const secs = tookMs / 1000;
    let bucket = 0;
    // From below: nearly all requests are in the first one.
    for (const bound of BOUNDS_SECS) {
      if (secs <= bound) break;
      bucket += 1;
    }
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sumMs += tookMs;
  }

  /** For each bound, and for no bound at all, how many took no longer than that. */
  cumulativeCounts(): number[] {
    let sum = 0;
    return Array.from(this.#counts, (count) => {
      sum += count;
      return sum;
    });
  }

  get sumSecs(): number {
    return this.#sumMs / 1000;
  }
}
