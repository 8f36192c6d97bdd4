import { BOUNDS_SECS, type Histogram } from "../runtime/histogram.ts";

/** Label names and values. Values are this program's own words, so that none has to be escaped. */
export type Labels = Readonly<Record<string, string>>;

/** The value of a metric without labels, or one for each set of labels. */
export type Values<T> = T | Iterable<readonly [Labels, T]>;

/** Writes metrics in Prometheus' text format 0.0.4. */
export class Exposition {
  readonly #lines: string[] = [];

  gauge(name: string, help: string, values: Values<number>): void {
    this.#metric(name, "gauge", help, values);
  }

  /** `name` ends in `_total`. */
  counter(name: string, help: string, values: Values<number>): void {
    this.#metric(name, "counter", help, values);
  }

  /** `name` ends in `_seconds`. */
  histogram(name: string, help: string, values: Values<Histogram>): void {
    this.#head(name, "histogram", help);
    for (const [labels, histogram] of each(values)) {
      const counts = histogram.cumulativeCounts();
      for (const [at, count] of counts.entries()) {
        this.#sample(`${name}_bucket`, { ...labels, le: String(BOUNDS_SECS[at] ?? "+Inf") }, count);
      }
      this.#sample(`${name}_sum`, labels, histogram.sumSecs);
      this.#sample(`${name}_count`, labels, counts.at(-1) ?? 0);
    }
  }

  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  #metric(name: string, type: string, help: string, values: Values<number>): void {
    this.#head(name, type, help);
    for (const [labels, value] of each(values)) this.#sample(name, labels, value);
  }

  #head(name: string, type: string, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  #sample(name: string, labels: Labels, value: number): void {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    this.#lines.push(`${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}`);
  }
}

function each<T extends number | Histogram>(values: Values<T>): Iterable<readonly [Labels, T]> {
  return typeof values === "object" && Symbol.iterator in values ? values : [[{}, values]];
}
