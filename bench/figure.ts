import { median } from "./rounds.ts";

/** What the numbers of a figure count; `/core s` is a rate per second of one core. */
export type Unit = "/core s" | "ms" | "MB" | "bytes";

/** A bound on the ratio of service to peer, or on the service's value where there is no peer. */
export interface Goal {
  readonly sign: ">=" | "<=" | "<";
  readonly bound: number;
}

export const atLeast = (bound: number): Goal => ({ sign: ">=", bound });
export const atMost = (bound: number): Goal => ({ sign: "<=", bound });
export const below = (bound: number): Goal => ({ sign: "<", bound });

/** One line of the table. Sizes are in bytes, whatever the unit they are shown in. */
export interface Figure {
  readonly name: string;
  readonly unit: Unit;
  /** Medians of the rounds. */
  readonly service: number;
  readonly peer?: number;
  /**
   * Service divided by peer: the median over the rounds, in each of which they were measured one right
   * after the other. The machine's own pace may double from one minute to the next, and hits both.
   */
  readonly ratio?: number;
  readonly goal?: Goal;
  readonly isMet?: boolean;
  /** Rates by the clock on the wall, where the figure is one of CPU time. */
  readonly perSecond?: { readonly service: number; readonly peer: number };
  /** Every round that counts, to see the spread by. */
  readonly samples: Samples;
}

/** What was measured, round by round. */
export interface Samples {
  readonly service: readonly number[];
  readonly peer?: readonly number[];
}

/** Makes a line of the table out of what was measured. */
export function figure(name: string, unit: Unit, samples: Samples, goal?: Goal): Figure {
  const service = median(samples.service);
  const peer = samples.peer === undefined ? undefined : median(samples.peer);
  const ratio = ratioOf(samples);
  return {
    name,
    unit,
    service,
    ...(peer === undefined ? {} : { peer }),
    ...(ratio === undefined ? {} : { ratio }),
    ...(goal === undefined ? {} : { goal, isMet: meets(ratio ?? service, goal) }),
    samples,
  };
}

function ratioOf({ service, peer }: Samples): number | undefined {
  if (peer === undefined) return undefined;
  return median(service.map((value, round) => value / (peer[round] ?? Number.NaN)));
}

function meets(value: number, { sign, bound }: Goal): boolean {
  if (sign === ">=") return value >= bound;
  return sign === "<=" ? value <= bound : value < bound;
}

/** The figures as a table for people. */
export function table(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, unit, service, peer, ratio, goal, isMet }) => [
    name,
    written(service, unit),
    peer === undefined ? "" : written(peer, unit),
    ratio === undefined ? "" : ratio.toFixed(2),
    goal === undefined ? "" : goalText(goal, ratio === undefined ? unit : undefined),
    isMet === undefined ? "" : isMet ? "✓" : "✗",
  ]);
  const header = ["", "service", "peer", "ratio", "goal", ""];
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  return [header, ...rows].map((row) => layOut(row, widths)).join("\n");
}

/** Names stand left, numbers right. */
function layOut(row: readonly string[], widths: readonly number[]): string {
  const cells = row.map((cell, column) => {
    const width = widths[column] ?? 0;
    return column === 0 ? cell.padEnd(width) : cell.padStart(width);
  });
  return cells.join("  ").trimEnd();
}

function goalText({ sign, bound }: Goal, unit: Unit | undefined): string {
  return `${sign} ${unit === undefined ? bound.toFixed(2) : written(bound, unit)}`;
}

function written(value: number, unit: Unit): string {
  const digits = unit === "ms" || unit === "MB" ? 1 : 0;
  const shown = (unit === "MB" ? value / 1e6 : value).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return unit === "/core s" ? `${shown}/core s` : `${shown} ${unit}`;
}
