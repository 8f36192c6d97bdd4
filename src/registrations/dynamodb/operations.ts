import type { Clock } from "../../runtime/clock.ts";
import { Histogram } from "../../runtime/histogram.ts";
import type { OperationFacts, OperationResult } from "../store.ts";
import { TableError } from "./table.ts";

/** Counts one kind of operation on the table by how each ended, and how long they took. */
export class Operations implements OperationFacts {
  readonly results: Record<OperationResult, number> = {
    ok: 0,
    throttled: 0,
    timeout: 0,
    denied: 0,
    error: 0,
  };
  readonly duration = new Histogram();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does what `operation` does, and counts it. */
  async count<T>(operation: () => Promise<T>): Promise<T> {
    const beganAtMs = this.#clock.monotonicMs();
    let result: OperationResult = "error";
    try {
      const value = await operation();
      result = "ok";
      return value;
    } catch (error) {
      if (error instanceof TableError) result = error.fault;
      throw error;
    } finally {
      this.results[result] += 1;
      this.duration.observe(this.#clock.monotonicMs() - beganAtMs);
    }
  }
}
