import { expect, test } from "bun:test";
import { Departed } from "../../src/directory/departed.ts";
import type { Departure } from "../../src/registrations/store.ts";
import { FakeClock } from "../support/fake-clock.ts";

const TEN_MINUTES_MS = 600_000;

function departureOf(overrides: Partial<Departure> = {}): Departure {
  return {
    what: "lease ended",
    endedMsAgo: 200,
    registeredMsAgo: 15_200,
    writtenIn: "us-west-2",
    disagreements: { count: 2, fields: ["model"], lastMsAgo: 20_000 },
    ...overrides,
  };
}

test("a pool that left is told of with the reason, which grows older", () => {
  const clock = new FakeClock();
  const departed = new Departed(clock);
  departed.add("a", departureOf());
  clock.advance(12_000);
  expect(departed.registrationOf("a")).toEqual({
    isLive: false,
    reasons: ["lease ended 12 s ago"],
    registeredMsAgo: 27_200,
    leaseLeftMs: 0,
    writtenIn: "us-west-2",
    disagreements: { count: 2, fields: ["model"], lastMsAgo: 20_000 },
  });
  expect(departed.registrationOf("b")).toBeUndefined();
});

test("a pool that was never registered has left without a registration", () => {
  const departed = new Departed(new FakeClock());
  departed.add("a");
  expect(departed.has("a")).toBe(true);
  expect(departed.registrationOf("a")).toBeUndefined();
});

test("a pool that left stays for ten minutes", () => {
  const clock = new FakeClock();
  const departed = new Departed(clock);
  departed.add("a", departureOf());
  clock.advance(1);
  departed.add("b", departureOf());
  clock.advance(TEN_MINUTES_MS - 1);
  expect([...departed.ids()]).toEqual(["a", "b"]);
  clock.advance(1);
  expect(departed.has("a")).toBe(false);
  expect(departed.registrationOf("a")).toBeUndefined();
  expect([...departed.ids()]).toEqual(["b"]);
});

test("it is forgotten also where nobody asks about another", () => {
  const clock = new FakeClock();
  const departed = new Departed(clock);
  departed.add("a", departureOf());
  clock.advance(TEN_MINUTES_MS + 1);
  expect(departed.registrationOf("a")).toBeUndefined();
});

test("of the pools that left, the last 1,000 stay", () => {
  const departed = new Departed(new FakeClock());
  for (let n = 0; n < 1500; n += 1) departed.add(`pool-${n}`, departureOf());
  // One that leaves again is one of the last.
  departed.add("pool-600", departureOf());
  const ids = [...departed.ids()];
  expect(ids).toHaveLength(1000);
  expect(ids[0]).toBe("pool-500");
  expect(ids.at(-1)).toBe("pool-600");
});

test("a pool that returns has not left", () => {
  const departed = new Departed(new FakeClock());
  departed.add("a", departureOf());
  departed.delete("a");
  expect([...departed.ids()]).toEqual([]);
  expect(departed.registrationOf("a")).toBeUndefined();
});
