import { expect, test } from "bun:test";
import { planOf } from "./plan-of.ts";
import { describe } from "./report.ts";
import { run } from "./run.ts";

const RUNS = 200;

/** Which seeds run is always the same; `bun run simulate --minutes 30` goes on to others. */
for (let first = 1; first <= RUNS; first += 20) {
  test(`whatever happens, the lists keep their promises (seeds ${first} to ${first + 19})`, () => {
    for (let seed = first; seed < first + 20; seed += 1) {
      const { violation } = run(planOf(String(seed)));
      if (violation === undefined) continue;
      throw new Error(`bun run simulate --seed ${seed}\n${describe(violation)}`);
    }
  });
}

test("a seed gives the same run each time", () => {
  const plan = planOf("7");
  expect(planOf("7")).toEqual(plan);
  expect(run(plan)).toEqual(run(plan));
});
