import { compareKeys, type PoolKey } from "../pools/pool.ts";
import { Representation } from "./representation.ts";

interface Entry {
  readonly key: PoolKey;
  json: string;
}

/**
 * The listed pools, in order, and the bytes of `GET /pools`. A change costs one search and marks the
 * bytes as stale; they are made anew when they are next asked for, once for any number of changes.
 */
export class Listing {
  readonly #show: (json: string) => string;
  readonly #sorted: Entry[] = [];
  #representation: Representation | undefined;
  #complete = false;

  /**
   * `show` makes what is listed of what was put. It is called each time that the bytes are made, so
   * that what was put may be a string that somebody else keeps, and takes no memory of its own.
   */
  constructor(show = (json: string) => json) {
    this.#show = show;
  }

  /** Lists a pool as `json`, in place of what was listed under its key. */
  put(key: PoolKey, json: string): void {
    const place = this.#place(key);
    const listed = this.#at(place, key);
    if (listed?.json === json) return;
    this.#representation = undefined;
    if (listed === undefined) this.#sorted.splice(place, 0, { key, json });
    else listed.json = json;
  }

  /** Takes a pool off the list; harmless where it is not on it. */
  remove(key: PoolKey): void {
    const place = this.#place(key);
    if (this.#at(place, key) === undefined) return;
    this.#representation = undefined;
    this.#sorted.splice(place, 1);
  }

  /** How many pools are listed. */
  get size(): number {
    return this.#sorted.length;
  }

  /** The body of `GET /pools`, the same object until its content changes. */
  representation(complete: boolean): Representation {
    if (this.#representation === undefined || this.#complete !== complete) {
      const pools = this.#sorted.map((entry) => this.#show(entry.json)).join(",");
      this.#representation = new Representation(`{"pools":[${pools}],"complete":${complete}}`);
      this.#complete = complete;
    }
    return this.#representation;
  }

  /** What is listed under `key`, whose place is `place`. */
  #at(place: number, key: PoolKey): Entry | undefined {
    const entry = this.#sorted[place];
    return entry !== undefined && compareKeys(entry.key, key) === 0 ? entry : undefined;
  }

  /** Where `key` stands, or would stand, in the order of the list. */
  #place(key: PoolKey): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.#sorted[middle];
      if (entry !== undefined && compareKeys(entry.key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
