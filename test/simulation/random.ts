/**
 * Random numbers of a seed, the same on every machine. Whoever draws has a stream of its own (`fork`),
 * so that leaving one part of a run out changes nothing of what the others draw.
 *
 * The generator is sfc32 (PractRand, by Chris Doty-Humphrey); a seed is spread over its state by the
 * finaliser of MurmurHash3.
 */
export class Random {
  readonly #seed: string;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: string) {
    this.#seed = seed;
    this.#a = hash(seed, 1);
    this.#b = hash(seed, 2);
    this.#c = hash(seed, 3);
    for (let i = 0; i < 12; i += 1) this.next();
  }

  /** Another stream, which depends on this one's seed and on the name, but not on what was drawn. */
  fork(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  /** From 0 to below 1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error("there is nothing to pick from");
    // The index is one of the list's.
    return list[this.int(0, list.length - 1)] as T;
  }

  shuffled<T>(list: readonly T[]): T[] {
    return list
      .map((item) => ({ item, place: this.next() }))
      .sort((a, b) => a.place - b.place)
      .map(({ item }) => item);
  }
}

function hash(text: string, salt: number): number {
  let h = Math.imul(salt, 0x9e3779b1);
  for (let i = 0; i < text.length; i += 1) h = mix(h ^ text.charCodeAt(i));
  return h;
}

function mix(h: number): number {
  const once = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return twice ^ (twice >>> 16);
}
