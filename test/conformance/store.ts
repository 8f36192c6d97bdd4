import { describe, expect, test } from "bun:test";
import { type Registration, sortKey } from "../../src/pools/pool.ts";
import type { Departure, LivePools, RegistrationStore } from "../../src/registrations/store.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { limits } from "../../src/runtime/limits.ts";
import { makeKey, makeRegistration, send } from "../support/pools.ts";

/** A store with a lease of 15 s, at its start, and what a test needs to see of it. */
export interface StoreUnderTest {
  readonly store: RegistrationStore;
  /** Lets time pass while the process runs. */
  readonly advance: (ms: number) => void | Promise<void>;
  /** Lets time pass while the process can't run. */
  readonly pause: (ms: number) => void;
  /** Runs the timers that became due in a pause; what they begin has not ended yet. */
  readonly wake: () => void;
  /** Warnings logged so far, as `message field=value …`. */
  readonly warnings: () => string[];
}

export const LEASE_SECS = 15;
const LEASE_MS = LEASE_SECS * 1000;

/** The live pools as a store tells of them. */
class Seen implements LivePools {
  readonly pools = new Map<string, Registration>();
  readonly departures: Departure[] = [];
  changes = 0;

  put(id: string, registration: Registration, json: string): void {
    expect(id).toBe(sortKey(registration.key));
    expect(json).toBe(JSON.stringify(registration));
    this.pools.set(id, registration);
    this.changes += 1;
  }

  remove(id: string, departure: Departure): void {
    expect(this.pools.delete(id)).toBe(true);
    this.departures.push(departure);
    this.changes += 1;
  }
}

/** What every store promises. `open` starts an empty one. */
export function describeStore(
  name: string,
  open: (livePools: LivePools) => StoreUnderTest | Promise<StoreUnderTest>,
): void {
  const setUp = async () => {
    const seen = new Seen();
    const underTest = await open(seen);
    const live = () => {
      underTest.store.expire();
      return [...seen.pools.keys()].sort();
    };
    return { ...underTest, seen, live };
  };
  const a = makeRegistration({ key: makeKey("a") });
  const b = makeRegistration({ key: makeKey("b") });
  const nameOfA = "aws-west/dynamo/a";

  describe(`${name}: a registration`, () => {
    test("makes its pool live at once", async () => {
      const { store, live, seen } = await setUp();
      await send(store, a);
      expect(seen.pools.get(nameOfA)).toEqual(a);
      expect(live()).toEqual([nameOfA]);
    });

    test("lasts its lease to the millisecond, and no longer", async () => {
      const { store, live, advance } = await setUp();
      await send(store, a);
      await advance(LEASE_MS);
      expect(live()).toEqual([nameOfA]);
      await advance(1);
      expect(live()).toEqual([]);
    });

    test("starts its lease anew each time it is sent, and touches no other pool", async () => {
      const { store, live, advance, seen } = await setUp();
      await send(store, a);
      await send(store, b);
      await advance(LEASE_MS - 1);
      await send(store, a);
      await advance(2);
      expect(live()).toEqual([nameOfA]);
      await advance(LEASE_MS - 2);
      expect(live()).toEqual([nameOfA]);
      await advance(1);
      expect(live()).toEqual([]);
      expect(seen.changes).toBe(4);
    });

    test("that comes again after its lease is a new pool", async () => {
      const { store, live, advance } = await setUp();
      await send(store, a);
      await advance(LEASE_MS + 1);
      await send(store, a);
      expect(live()).toEqual([nameOfA]);
      await advance(LEASE_MS);
      expect(live()).toEqual([nameOfA]);
    });

    test("that is the same changes nothing but the lease, and the first order stays", async () => {
      const { store, seen, warnings } = await setUp();
      const first = makeRegistration({ capabilities: ["x", "y", "x"] });
      await send(store, first);
      await send(store, structuredClone(first));
      await send(store, { ...first, capabilities: ["y", "x", "x"] });
      expect([...seen.pools.values()]).toEqual([first]);
      expect(seen.changes).toBe(1);
      expect(warnings()).toEqual([]);
    });

    test("that differs replaces the one before, whoever sent that", async () => {
      const { store, seen } = await setUp();
      await send(store, a);
      await send(store, { ...a, model: "other" });
      expect(seen.pools.get(nameOfA)?.model).toBe("other");
      await send(store, a);
      expect(seen.pools.get(nameOfA)).toEqual(a);
    });
  });

  describe(`${name}: a disagreement`, () => {
    test("is a warning that names the pool and the fields", async () => {
      const { store, warnings } = await setUp();
      await send(store, a);
      await send(store, { ...a, model: "other", capabilities: [] });
      expect(warnings()).toEqual([
        `a registration replaced one that differs pool=${nameOfA} fields=model,capabilities count=1`,
      ]);
    });

    test("is warned of at most once a minute a pool, with the count since the last", async () => {
      const { store, warnings, advance } = await setUp();
      await send(store, a);
      await send(store, b);
      // Two relays that disagree, for two minutes and a half.
      for (let round = 0; round < 30; round += 1) {
        await send(store, { ...a, model: `model-${round}` });
        await send(store, b);
        await advance(5000);
      }
      const counts = warnings().map((warning) => Number(/count=(\d+)/.exec(warning)?.[1]));
      expect(warnings().every((warning) => warning.includes(nameOfA))).toBe(true);
      expect(counts).toEqual([1, 12, 12]);
    });

    test("of one pool does not hide that of another", async () => {
      const { store, warnings } = await setUp();
      await send(store, a);
      await send(store, b);
      await send(store, { ...a, model: "other" });
      await send(store, { ...b, model: "other" });
      expect(warnings()).toHaveLength(2);
    });
  });

  describe(`${name}: time in which the process could not run`, () => {
    for (const first of ["a timer", "a request"]) {
      test(`is held against no pool when ${first} runs first`, async () => {
        const { store, live, advance, pause, wake } = await setUp();
        await send(store, a);
        await advance(LEASE_MS - 1000);
        pause(3 * LEASE_MS);
        if (first === "a timer") wake();
        expect(live()).toEqual([nameOfA]);
        wake();
        expect(live()).toEqual([nameOfA]);
        await send(store, a);
        await advance(LEASE_MS);
        expect(live()).toEqual([nameOfA]);
      });
    }

    test("makes the list incomplete for one lease, when it is asked first of all", async () => {
      const { store, advance, pause, wake } = await setUp();
      await advance(LEASE_MS + 1);
      expect(store.isComplete()).toBe(true);
      pause(5000);
      expect(store.isComplete()).toBe(false);
      wake();
      await advance(LEASE_MS);
      expect(store.isComplete()).toBe(false);
      await advance(1);
      expect(store.isComplete()).toBe(true);
    });
  });

  describe(`${name}: what is told of a pool`, () => {
    const id = sortKey(a.key);

    test("is when it was registered and what is left of its lease", async () => {
      const { store, advance } = await setUp();
      expect(store.registrationOf(id)).toBeUndefined();
      await send(store, a);
      await advance(4000);
      expect(store.registrationOf(id)).toMatchObject({
        isLive: true,
        reasons: [],
        registeredMsAgo: 4000,
        leaseLeftMs: LEASE_MS - 4000,
        disagreements: { count: 0, fields: [], lastMsAgo: null },
      });
      expect([...store.poolIds()]).toEqual([id]);
      expect(store.liveCount()).toBe(1);
      await send(store, a);
      expect(store.registrationOf(id)).toMatchObject({ registeredMsAgo: 0, leaseLeftMs: LEASE_MS });
    });

    test("ends with how it left", async () => {
      const { store, live, advance, seen } = await setUp();
      await send(store, a);
      await send(store, { ...a, model: "other" });
      await advance(LEASE_MS + 100);
      live();
      expect(store.registrationOf(id)).toBeUndefined();
      expect(store.liveCount()).toBe(0);
      expect(seen.departures).toHaveLength(1);
      const [departure] = seen.departures;
      expect(departure).toMatchObject({ what: "lease ended", disagreements: { count: 1 } });
      // It is noticed by the beat, or earlier.
      const { endedMsAgo = Number.NaN, registeredMsAgo = Number.NaN } = departure ?? {};
      expect(endedMsAgo).toBeWithin(0, 101);
      expect(registeredMsAgo - endedMsAgo).toBe(LEASE_MS);
    });

    test("counts all its disagreements, however often the log tells of them", async () => {
      const { store, advance } = await setUp();
      await send(store, a);
      await send(store, { ...a, model: "other" });
      await send(store, { ...a, capabilities: [] });
      await advance(1000);
      expect(store.registrationOf(id)?.disagreements).toEqual({
        count: 2,
        fields: ["model", "capabilities"],
        lastMsAgo: 1000,
      });
    });
  });

  describe(`${name}: the counts`, () => {
    test("say what became of registrations and of pools", async () => {
      const { store, advance, live } = await setUp();
      expect(new Set(Object.values(store.counts))).toEqual(new Set([0]));
      const ordered = { ...a, capabilities: ["x", "y"] };
      for (const registration of [ordered, ordered, { ...a, capabilities: ["y", "x"] }, b]) {
        await send(store, registration);
      }
      expect(store.counts).toMatchObject({ added: 2, renewed: 2, changed: 0, disagreements: 0 });
      await send(store, { ...b, model: "other" });
      expect(store.counts).toMatchObject({ changed: 1, disagreements: 1, expired: 0 });
      await advance(LEASE_MS + 1);
      expect(live()).toEqual([]);
      await send(store, b);
      expect(store.counts).toEqual({
        added: 3,
        renewed: 2,
        changed: 1,
        refused: 0,
        failed: 0,
        expired: 2,
        disagreements: 1,
      });
    });

    test("have a registration for which there is no room as refused", async () => {
      const { store } = await setUp();
      const model = "m".repeat(limits.registrationBytes);
      await send(store, a);
      for (const registration of [
        { ...a, model },
        { ...b, model },
      ]) {
        const refusal = await (async () => send(store, registration))().catch((error) => error);
        expect(refusal).toBeInstanceOf(ServiceError);
      }
      expect(store.counts).toMatchObject({
        added: 1,
        renewed: 0,
        changed: 0,
        refused: 2,
        failed: 0,
      });
    });
  });

  describe(`${name}: the list`, () => {
    test("says why it is not complete", async () => {
      const { store, advance, pause, wake } = await setUp();
      const reasons = () => [...store.incompleteReasons()];
      expect(reasons()).toEqual(["less than one lease of 15 s has passed since the start"]);
      await advance(LEASE_MS + 1);
      expect(reasons()).toEqual([]);
      pause(5000);
      expect(reasons()[0]).toBe(
        "less than one lease of 15 s has passed since the process was stopped or starved",
      );
      wake();
      await advance(LEASE_MS + 1);
      expect(reasons()).toEqual([]);
    });

    test("is complete once one lease has passed since the start", async () => {
      const { store, advance } = await setUp();
      expect(store.isComplete()).toBe(false);
      await send(store, a);
      await advance(LEASE_MS);
      expect(store.isComplete()).toBe(false);
      await advance(1);
      expect(store.isComplete()).toBe(true);
    });
  });
}
