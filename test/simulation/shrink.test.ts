import { expect, test } from "bun:test";
import type { Plan } from "./plan.ts";
import { planOf } from "./plan-of.ts";
import type { Outcome } from "./run.ts";
import { shrink } from "./shrink.ts";

/** A run that fails where a plan has some pool, and all pauses that `planOf("8")` has of a replica. */
function carryOut(plan: Plan): Outcome {
  const isFailing =
    plan.pools.some(({ name }) => name === "p1") &&
    plan.faults.filter(({ kind }) => kind === "pause").length >= 2;
  const violation = { invariant: "complete", atMs: 5000, replica: "", message: "" } as const;
  return {
    violation: isFailing ? violation : undefined,
    simulatedMs: 5000,
    steps: 1,
    digest: 0n,
  };
}

test("of a plan that fails, what is not needed for that is left out", () => {
  const { seed, ...rest } = planOf("8");
  const pause = { kind: "pause", forMs: 1, replica: "us-west-2/0", order: "mixed" } as const;
  const faults = [...rest.faults, { ...pause, atMs: 100 }, { ...pause, atMs: 200 }];
  const pools = ["p0", "p1", "p2"].map((name) => ({
    name,
    cluster: "a",
    namespace: "dynamo",
    region: "us-west-2",
    relays: [`${name}/0`, `${name}/1`],
  }));
  const plan = { ...rest, seed, faults, pools };
  const least = shrink({ plan, outcome: carryOut(plan) }, carryOut).plan;
  expect(least.seed).toBe(seed);
  expect(least.faults.map(({ kind }) => kind)).toEqual(["pause", "pause"]);
  expect(least.pools.map(({ name, relays }) => [name, relays])).toEqual([["p1", ["p1/0"]]]);
  expect(least.replicas).toHaveLength(1);
});
