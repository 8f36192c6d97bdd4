import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";
import type { LeftOutReason } from "./ownership.ts";

export interface LeftOut {
  readonly count: number;
  /** `namespace/name` of the first ten of them. */
  readonly names: readonly string[];
}

/** What the log says of slices that were probably meant to count. */
const WARNINGS: Readonly<Partial<Record<LeftOutReason, string>>> = {
  "unknown-cluster": "imported slices are left out: which cluster they are from can't be told",
  fqdn: "imported slices are left out: their addresses are names, not IP addresses",
};

/** The slices that don't count, by the reason. A slice is its `namespace/name`. */
export class LeftOutSlices {
  readonly #log: Log;
  readonly #slices: Readonly<Record<LeftOutReason, Set<string>>> = {
    "not-imported": new Set(),
    "other-namespace": new Set(),
    "unknown-cluster": new Set(),
    fqdn: new Set(),
    "other-service": new Set(),
  };
  /** The slices that the log has told of, for as long as they exist. */
  readonly #told = new Set<string>();
  readonly #untold = new Map<LeftOutReason, string[]>();

  constructor(log: Log) {
    this.#log = log;
  }

  add(slice: string, reason: LeftOutReason): void {
    this.#slices[reason].add(slice);
    if (WARNINGS[reason] === undefined || this.#told.has(slice)) return;
    this.#told.add(slice);
    const untold = this.#untold.get(reason);
    if (untold === undefined) this.#untold.set(reason, [slice]);
    else untold.push(slice);
  }

  /** A slice that was added is no longer left out for this reason. */
  delete(slice: string, reason: LeftOutReason): void {
    this.#slices[reason].delete(slice);
  }

  /** A slice is gone; should one by its name come, it is another. */
  forget(slice: string): void {
    this.#told.delete(slice);
  }

  /** Tells the log of slices that it has not been told of, in one line for each reason. */
  report(): void {
    for (const [reason, slices] of this.#untold) {
      this.#log.warn(WARNINGS[reason] ?? "", {
        count: slices.length,
        slices: slices.slice(0, limits.namedSlices).join(","),
      });
    }
    this.#untold.clear();
  }

  counts(): Readonly<Record<LeftOutReason, LeftOut>> {
    const counted = (slices: Set<string>): LeftOut => ({
      count: slices.size,
      names: [...slices.values().take(limits.namedSlices)],
    });
    return {
      "not-imported": counted(this.#slices["not-imported"]),
      "other-namespace": counted(this.#slices["other-namespace"]),
      "unknown-cluster": counted(this.#slices["unknown-cluster"]),
      fqdn: counted(this.#slices.fqdn),
      "other-service": counted(this.#slices["other-service"]),
    };
  }
}
