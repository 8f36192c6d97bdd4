const NONE = -1;

/**
 * Who was renewed when, in the order of renewal. Everybody has a place: a small number, given anew
 * once it is free.
 *
 * A doubly linked list, so that each step is O(1). Its links are numbers in arrays, not objects:
 * a renewal touches little memory, and gives the garbage collector nothing to look at.
 *
 * Renewals are put in by their time, not behind each other, for the run clock goes back when it finds
 * a pause: to the last beat before it, after which others may have been renewed. They are the few of
 * the last second.
 */
export class RenewalOrder {
  #renewedAtMs = new Float64Array(16);
  #older = new Int32Array(16);
  #newer = new Int32Array(16);
  #oldest = NONE;
  #newest = NONE;
  #size = 0;
  readonly #free: number[] = [];

  /** The place of whoever was renewed longest ago; undefined where there is nobody. */
  oldest(): number | undefined {
    return this.#oldest === NONE ? undefined : this.#oldest;
  }

  renewedAtMs(place: number): number {
    return this.#renewedAtMs[place] ?? Number.NaN;
  }

  /** Gives a place to somebody who is renewed now. */
  add(nowMs: number): number {
    const place = this.#free.pop() ?? this.#size++;
    if (place === this.#older.length) this.#grow();
    this.#insert(place, nowMs);
    return place;
  }

  renew(place: number, nowMs: number): void {
    if (place === this.#newest && nowMs >= this.renewedAtMs(place)) {
      this.#renewedAtMs[place] = nowMs;
    } else {
      this.#unlink(place);
      this.#insert(place, nowMs);
    }
  }

  remove(place: number): void {
    this.#unlink(place);
    this.#free.push(place);
  }

  #insert(place: number, nowMs: number): void {
    let older = this.#newest;
    let newer = NONE;
    while (older !== NONE && this.renewedAtMs(older) > nowMs) {
      newer = older;
      older = this.#older[older] ?? NONE;
    }
    this.#renewedAtMs[place] = nowMs;
    this.#older[place] = older;
    this.#newer[place] = newer;
    if (older === NONE) this.#oldest = place;
    else this.#newer[older] = place;
    if (newer === NONE) this.#newest = place;
    else this.#older[newer] = place;
  }

  #unlink(place: number): void {
    const older = this.#older[place] ?? NONE;
    const newer = this.#newer[place] ?? NONE;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
  }

  #grow(): void {
    const length = 2 * this.#older.length;
    this.#renewedAtMs = grown(this.#renewedAtMs, new Float64Array(length));
    this.#older = grown(this.#older, new Int32Array(length));
    this.#newer = grown(this.#newer, new Int32Array(length));
  }
}

function grown<T extends Float64Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
