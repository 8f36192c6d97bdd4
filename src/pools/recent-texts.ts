/**
 * Remembers a value for each text that was lately asked for. In two generations: when the younger
 * one is full it becomes the older one, and what was not asked for since then is forgotten.
 */
export class RecentTexts<T> {
  readonly #charsEach: number;
  #younger = new Map<string, T>();
  #older = new Map<string, T>();
  #youngerChars = 0;

  /** `maxChars` is how many UTF-16 code units of texts are held at most. */
  constructor(maxChars: number) {
    this.#charsEach = maxChars / 2;
  }

  get(text: string): T | undefined {
    const value = this.#younger.get(text);
    if (value !== undefined) return value;
    const old = this.#older.get(text);
    if (old !== undefined) this.set(text, old);
    return old;
  }

  /** Remembers `value` for a text that is not known. */
  set(text: string, value: T): void {
    if (this.#youngerChars + text.length > this.#charsEach) {
      this.#older = this.#younger;
      this.#younger = new Map();
      this.#youngerChars = 0;
    }
    this.#younger.set(text, value);
    this.#youngerChars += text.length;
  }
}
