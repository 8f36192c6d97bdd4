/** What was found to be wrong, and how often things were done. */
export class Findings {
  readonly violations: string[] = [];
  readonly #counts = new Map<string, number>();
  readonly #say: (line: string) => void;

  /** `say` hears of what is wrong at once. */
  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  /** Keeps the largest of some values. */
  most(what: string, value: number): void {
    this.#counts.set(what, Math.max(this.#counts.get(what) ?? 0, value));
  }

  get counts(): readonly (readonly [what: string, count: number])[] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Notes what broke a promise. */
  violate(what: string): void {
    const line = `${new Date().toISOString()} ${what}`;
    this.violations.push(line);
    this.#say(`VIOLATION ${line}`);
  }

  check(holds: boolean, what: () => string): void {
    this.count("checks");
    if (!holds) this.violate(what());
  }

  /** Whether there is no use in going on. */
  get isHopeless(): boolean {
    return this.violations.length >= 20;
  }
}
