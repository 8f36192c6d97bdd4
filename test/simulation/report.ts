import type { Plan } from "./plan.ts";
import type { Violation } from "./violation.ts";
import { INVARIANTS } from "./violation.ts";

/** What went wrong in a run, for whoever has to find out why. */
export function describe({ invariant, replica, message, atMs }: Violation): string {
  return `${invariant}: ${INVARIANTS[invariant]}\n  at ${atMs / 1000} s, ${replica}: ${message}`;
}

/** A plan, a line for each part of it. */
export function outline(plan: Plan): string {
  const { mode, store, settings, faultsForMs, replicas, pools, faults } = plan;
  return [
    `${mode} with ${store}, faults for ${faultsForMs / 1000} s: ${JSON.stringify(settings)}`,
    ...replicas.map((replica) => `replica ${JSON.stringify(replica)}`),
    ...pools.map((pool) => `pool ${JSON.stringify(pool)}`),
    ...faults.map((fault) => `fault ${JSON.stringify(fault)}`),
  ].join("\n  ");
}
