import { FOR_EVER_MS, type Plan } from "./plan.ts";
import { type Outcome, run } from "./run.ts";

/** A plan that fails, and how. */
export interface Failure {
  readonly plan: Plan;
  readonly outcome: Outcome;
}

/**
 * Leaves out what of a failing plan is not needed for it to fail of the same invariant: faults, pools,
 * relays, replicas, and time. What is left draws the same random numbers as before (see `Random.fork`).
 * Tries at most `mostRuns` plans.
 */
export function shrink(failure: Failure, carryOut = run, mostRuns = 300): Failure {
  const shrinker = new Shrinker(failure, carryOut, mostRuns);
  shrinker.shrink();
  return shrinker.best;
}

class Shrinker {
  best: Failure;
  readonly #carryOut: typeof run;
  #runsLeft: number;

  constructor(failure: Failure, carryOut: typeof run, mostRuns: number) {
    this.best = failure;
    this.#carryOut = carryOut;
    this.#runsLeft = mostRuns;
  }

  shrink(): void {
    let before: Plan;
    do {
      before = this.best.plan;
      this.#shorten();
      this.#leaveOut("faults");
      this.#leaveOut("pools");
      this.#leaveOut("replicas");
      for (const pool of this.best.plan.pools) this.#leaveOutRelaysOf(pool.name);
    } while (this.best.plan !== before && this.#runsLeft > 0);
  }

  /** Ends the faults where the run failed, if they were going on. */
  #shorten(): void {
    const { plan, outcome } = this.best;
    const { atMs = plan.faultsForMs } = outcome.violation ?? {};
    if (atMs >= plan.faultsForMs) {
      this.#try({ ...plan, faultsForMs: Math.ceil(plan.faultsForMs / 2) });
    } else {
      this.#try({ ...plan, faultsForMs: atMs + 1 });
    }
  }

  /** Delta debugging (Zeller and Hildebrandt): halves at first, then ever smaller pieces. */
  #leaveOut<K extends "faults" | "pools" | "replicas">(part: K): void {
    for (let size = this.best.plan[part].length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < this.best.plan[part].length; ) {
        const { plan } = this.best;
        const rest = plan[part].filter((_, index) => index < at || index >= at + size);
        const isNeeded = part !== "faults" && rest.length === 0;
        if (isNeeded || !this.#try({ ...plan, [part]: rest })) at += size;
      }
    }
  }

  #leaveOutRelaysOf(name: string): void {
    const { plan } = this.best;
    const pools = plan.pools.map((pool) =>
      pool.name === name ? { ...pool, relays: pool.relays.slice(0, 1) } : pool,
    );
    this.#try({ ...plan, pools });
  }

  /** Whether a plan fails of the same invariant; then it is the best so far. */
  #try(plan: Plan): boolean {
    if (this.#runsLeft === 0) return false;
    this.#runsLeft -= 1;
    // No fault goes on for longer than the faults may, but for a pool that never comes back.
    const faults = plan.faults
      .filter(({ atMs }) => atMs <= plan.faultsForMs)
      .map((fault) => {
        const leftMs = plan.faultsForMs - fault.atMs;
        return fault.forMs >= FOR_EVER_MS
          ? fault
          : { ...fault, forMs: Math.min(fault.forMs, leftMs) };
      });
    const outcome = this.#carryOut({ ...plan, faults });
    if (outcome.violation?.invariant !== this.best.outcome.violation?.invariant) return false;
    this.best = { plan: { ...plan, faults }, outcome };
    return true;
  }
}
