import { expect, test } from "bun:test";
import { SharedWork } from "../../src/runtime/shared-work.ts";
import { SteppedClock } from "../support/stepped-clock.ts";

/** Work that takes so long each time, and gives how often it was begun. */
function setUp(tookMs: number) {
  const clock = new SteppedClock();
  const beganAtMs: number[] = [];
  let underWay = 0;
  const work = new SharedWork(clock, async () => {
    beganAtMs.push(clock.monotonicMs());
    underWay += 1;
    expect(underWay).toBe(1);
    if (tookMs > 0) await new Promise<void>((resolve) => clock.after(tookMs, resolve));
    underWay -= 1;
    return beganAtMs.length;
  });
  return { clock, work, beganAtMs };
}

test("all who ask before it begins share it", async () => {
  const { clock, work } = setUp(10);
  const asked = [work.ask(), work.ask(), work.ask()];
  await clock.run(10);
  expect(await Promise.all(asked)).toEqual([1, 1, 1]);
});

test("whoever asks while it is under way gets what is begun after that", async () => {
  const { clock, work, beganAtMs } = setUp(10);
  const first = work.ask();
  await clock.run(5);
  const askedAtMs = clock.monotonicMs();
  const later = [work.ask(), work.ask()];
  await clock.run(100);
  expect(await first).toBe(1);
  expect(await Promise.all(later)).toEqual([2, 2]);
  expect(beganAtMs[1]).toBeGreaterThan(askedAtMs);
});

test("it takes no more than a fifth of the time, however often it is asked for", async () => {
  const { clock, work, beganAtMs } = setUp(10);
  const answers: number[] = [];
  let isOver = false;
  const asking = async () => {
    while (!isOver) answers.push(await work.ask());
  };
  void asking();
  void asking();
  await clock.run(999);
  isOver = true;
  expect(beganAtMs).toHaveLength(20);
  for (const [at, ms] of beganAtMs.entries()) {
    if (at > 0) expect(ms - (beganAtMs[at - 1] ?? 0)).toBe(50);
  }
});

test("nobody waits for more than two seconds before it begins", async () => {
  const { clock, work, beganAtMs } = setUp(3000);
  const first = work.ask();
  await clock.run(3000);
  expect(await first).toBe(1);
  const second = work.ask();
  await clock.run(5000);
  expect(await second).toBe(2);
  expect((beganAtMs[1] ?? 0) - (beganAtMs[0] ?? 0)).toBe(5000);
});

test("a failure is heard by those who asked, and not by those who ask later", async () => {
  const clock = new SteppedClock();
  let fails = true;
  const work = new SharedWork(clock, async () => {
    if (fails) throw new Error("no");
    return "yes";
  });
  const outcome = await work.ask().catch((error: Error) => error.message);
  expect(outcome).toBe("no");
  fails = false;
  const again = work.ask();
  await clock.run(0);
  expect(await again).toBe("yes");
});
