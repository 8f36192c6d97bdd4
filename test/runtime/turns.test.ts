import { expect, test } from "bun:test";
import fc from "fast-check";
import { sortInTurns, Turns } from "../../src/runtime/turns.ts";
import { SteppedClock } from "../support/stepped-clock.ts";

/** Lets `work` run to its end, and counts the turns that it has taken. */
async function turnsOf<T>(steps: number, work: (turns: Turns) => Promise<T>) {
  const clock = new SteppedClock();
  const turns = new Turns(clock, steps);
  let taken = 1;
  const next = turns.next.bind(turns);
  turns.next = () => {
    taken += 1;
    return next();
  };
  const done = work(turns);
  await clock.run(0);
  return { result: await done, taken };
}

const itemsOf = (numbers: readonly number[]) => numbers.map((n, at) => ({ n, at }));

test("items are sorted as toSorted does it, however long the turns are", async () => {
  const numbers = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 3000, size: "max" });
  await fc.assert(
    fc.asyncProperty(numbers, fc.integer({ min: 1, max: 20_000 }), async (given, steps) => {
      const items = itemsOf(given);
      const compare = (a: { n: number }, b: { n: number }) => a.n - b.n;
      const { result } = await turnsOf(steps, (turns) => sortInTurns(items, compare, turns));
      expect(result).toEqual(items.toSorted(compare));
    }),
    { numRuns: 50 },
  );
});

test("no turn of a sort has more comparisons than steps, but for the last few", async () => {
  const items = itemsOf(Array.from({ length: 20_000 }, (_, n) => (n * 7919) % 20_011));
  let [sinceTurn, most] = [0, 0];
  const { taken } = await turnsOf(10_000, async (turns) => {
    const next = turns.next.bind(turns);
    turns.next = () => {
      sinceTurn = 0;
      return next();
    };
    const compare = (a: { n: number }, b: { n: number }) => {
      sinceTurn += 1;
      most = Math.max(most, sinceTurn);
      return a.n - b.n;
    };
    return await sortInTurns(items, compare, turns);
  });
  expect(most).toBeLessThan(16_000);
  // 20,000 items in 40 runs: 20 turns to sort those, and 6 times 2 to merge them.
  expect(taken).toBeWithin(30, 36);
});

test("others have their turn in between", async () => {
  const clock = new SteppedClock();
  const turns = new Turns(clock, 2);
  const order: string[] = [];
  const work = async (name: string) => {
    for (let step = 0; step < 4; step += 1) {
      order.push(name);
      if (turns.spend(1)) await turns.next();
    }
  };
  const both = Promise.all([work("a"), work("b")]);
  await clock.run(0);
  await both;
  expect(order.join("")).toMatch(/ab/);
  expect(order).toHaveLength(8);
});
