import { expect, test } from "bun:test";
import { RegisteredDirectory } from "../../src/directory/registered.ts";
import { Representation } from "../../src/directory/representation.ts";
import { ListWaiters, Waiters } from "../../src/directory/waiters.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import { limits } from "../../src/runtime/limits.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { makeKey, makeRegistration, send } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { SteppedClock } from "../support/stepped-clock.ts";

const LEASE_MS = 15_000;

/** What a waiter was told, and when; `list` is undefined for one whose client has gone. */
interface Told {
  readonly list: Representation | undefined;
  readonly afterMs: number;
}

/** A client that has a list, and waits for another. */
function waitOn(
  waiters: ListWaiters,
  clock: SteppedClock,
  { etag = waiters.list().hash, waitMs = 60_000 } = {},
) {
  const startedAtMs = clock.monotonicMs();
  const controller = new AbortController();
  const client: { told: Told | undefined; leave(): void } = {
    told: undefined,
    leave: () => controller.abort(),
  };
  const has = (list: Representation) => list.hash === etag;
  waiters.hold({
    has,
    waitMs,
    signal: controller.signal,
    answer(list) {
      client.told = { list, afterMs: clock.monotonicMs() - startedAtMs };
    },
  });
  return client;
}

/** A directory over the memory store, as the service puts it together. */
async function setUp() {
  const clock = new SteppedClock();
  const runClock = new RunClock(clock, () => {});
  const directory = new RegisteredDirectory(
    (livePools) =>
      new MemoryStore({
        leaseSecs: LEASE_MS / 1000,
        livePools,
        clock,
        runClock,
        log: recordedLog().log,
      }),
    [],
    clock,
  );
  runClock.start(() => directory.expire());
  const waiters = new Waiters(directory, clock);
  const register = async (name: string, model = "m") => {
    await send(directory, makeRegistration({ key: makeKey(name), model }));
  };
  await register("first");
  await clock.run(LEASE_MS - 1000);
  await register("first");
  await clock.run(1001);
  return { clock, directory, waiters, register };
}

test("a waiter hears of a change at once", async () => {
  const { clock, directory, waiters, register } = await setUp();
  const client = waitOn(waiters.pools, clock);
  await clock.run(5000);
  expect(client.told).toBeUndefined();
  expect(waiters.pools.count).toBe(1);
  await register("second");
  await clock.run(0);
  expect(client.told).toEqual({ list: directory.pools(), afterMs: 5000 });
  expect(waiters.pools.count).toBe(0);
});

test("a waiter whose time is up is told the list that it has", async () => {
  const { clock, directory, waiters } = await setUp();
  const client = waitOn(waiters.pools, clock, { waitMs: 3000 });
  await clock.run(2999);
  expect(client.told).toBeUndefined();
  await clock.run(1);
  expect(client.told).toEqual({ list: directory.pools(), afterMs: 3000 });
  expect(waiters.pools.count).toBe(0);
});

test("a waiter that does not have the list is told at once", async () => {
  const { clock, waiters } = await setUp();
  const client = waitOn(waiters.pools, clock, { etag: "another" });
  await clock.run(0);
  expect(client.told?.afterMs).toBe(0);
});

test("a renewal wakes nobody", async () => {
  const { clock, waiters, register } = await setUp();
  const client = waitOn(waiters.pools, clock);
  for (let beat = 0; beat < 5; beat += 1) {
    await clock.run(5000);
    await register("first");
  }
  expect(client.told).toBeUndefined();
});

test("a change that leaves the bytes as they were wakes nobody", async () => {
  const { clock, directory, waiters, register } = await setUp();
  const client = waitOn(waiters.pools, clock);
  const before = directory.pools();
  await clock.run(200);
  await register("first", "another");
  await register("first");
  await clock.run(1000);
  expect(directory.pools()).not.toBe(before);
  expect(directory.pools().hash).toBe(before.hash);
  expect(client.told).toBeUndefined();
});

test("a change while a wait is being set up is not lost", async () => {
  const { clock, waiters, register } = await setUp();
  const before = waitOn(waiters.pools, clock);
  await register("second");
  await clock.run(0);
  expect(before.told?.afterMs).toBe(0);
});

test("a change of one list wakes nobody who waits for the other", async () => {
  const { clock, waiters, register } = await setUp();
  const client = waitOn(waiters.routers, clock);
  await register("second");
  await clock.run(1000);
  expect(client.told).toBeUndefined();
});

test("a waiter hears of a change of the routers at once", async () => {
  const { clock, directory } = await setUp();
  let routers = directory.routers();
  let heard = () => {};
  directory.routers = () => routers;
  directory.onChange = (listener) => {
    heard = listener;
  };
  const waiters = new Waiters(directory, clock);
  const client = waitOn(waiters.routers, clock);
  await clock.run(1050);
  routers = new Representation("others");
  heard();
  await clock.run(0);
  expect(client.told).toEqual({ list: routers, afterMs: 1050 });
});

test("a waiter hears that a lease has ended, though nobody sends anything", async () => {
  const { clock, waiters, register } = await setUp();
  await register("first");
  const client = waitOn(waiters.pools, clock);
  await clock.run(LEASE_MS);
  expect(client.told).toBeUndefined();
  await clock.run(limits.waitersLookMs);
  expect(client.told?.list).toBe(waiters.pools.list());
  expect(new TextDecoder().decode(client.told?.list?.bytes)).toContain('"pools":[]');
});

test("a waiter hears that the list has become complete by time alone", async () => {
  const clock = new SteppedClock();
  const runClock = new RunClock(clock, () => {});
  const { log } = recordedLog();
  const directory = new RegisteredDirectory(
    (livePools) => new MemoryStore({ leaseSecs: 15, livePools, clock, runClock, log }),
    [],
    clock,
  );
  runClock.start(() => directory.expire());
  const waiters = new Waiters(directory, clock);
  const client = waitOn(waiters.pools, clock);
  await clock.run(LEASE_MS + limits.waitersLookMs);
  expect(new TextDecoder().decode(client.told?.list?.bytes)).toBe('{"pools":[],"complete":true}');
});

test("a client that goes away waits no more, and leaves nothing behind", async () => {
  const { clock, waiters } = await setUp();
  const timers = clock.timers;
  const [leaving, staying] = [waitOn(waiters.pools, clock), waitOn(waiters.pools, clock)];
  await clock.run(500);
  leaving.leave();
  expect(waiters.pools.count).toBe(1);
  staying.leave();
  expect(waiters.pools.count).toBe(0);
  expect(clock.timers).toBe(timers);
  await clock.run(0);
  expect(leaving.told).toEqual({ list: undefined, afterMs: 500 });
});

test("at the end all are told the list, and nobody waits any more", async () => {
  const { clock, directory, waiters } = await setUp();
  const clients = [
    waitOn(waiters.pools, clock),
    waitOn(waiters.pools, clock, { etag: "another" }),
    waitOn(waiters.routers, clock),
  ];
  waiters.end();
  await clock.run(0);
  expect(clients.map(({ told }) => told?.list)).toEqual([
    directory.pools(),
    directory.pools(),
    directory.routers(),
  ]);
  expect(waiters.pools.count + waiters.routers.count).toBe(0);
  expect(waiters.pools.isOpen()).toBe(false);
  expect(waiters.routers.isOpen()).toBe(false);
});

test("10,000 clients may wait, for both lists together", async () => {
  const { clock, waiters } = await setUp();
  const first = waitOn(waiters.routers, clock);
  for (let n = 1; n < 10_000; n += 1) {
    expect(waiters.pools.isOpen()).toBe(true);
    waitOn(waiters.pools, clock);
  }
  expect(waiters.pools.isOpen()).toBe(false);
  expect(waiters.routers.isOpen()).toBe(false);
  first.leave();
  expect(waiters.pools.isOpen()).toBe(true);
});

/** Waiters on a list of which a test says what it is, and how long it takes to be made. */
function setUpList() {
  const clock = new SteppedClock();
  let current = new Representation("0");
  let isStale = false;
  const list = {
    made: 0,
    makingMs: 0,
    change(body: string) {
      current = new Representation(body);
      isStale = true;
      waiters.changed();
    },
    get(): Representation {
      if (isStale) {
        list.made += 1;
        clock.pause(list.makingMs);
      }
      isStale = false;
      return current;
    },
  };
  const waiters = new ListWaiters({ list: list.get, isFull: () => false, clock });
  return { clock, list, waiters };
}

test("a change with nobody waiting costs nothing", async () => {
  const { clock, list } = setUpList();
  list.change("1");
  await clock.run(10_000);
  expect(list.made).toBe(0);
  expect(clock.timers).toBe(0);
});

test("the list is made once for many changes and many waiters", async () => {
  const { clock, list, waiters } = setUpList();
  const clients = Array.from({ length: 100 }, () => waitOn(waiters, clock));
  await clock.run(1000);
  for (let change = 1; change <= 100; change += 1) list.change(`${change}`);
  await clock.run(0);
  expect(list.made).toBe(1);
  expect(clients.every(({ told }) => told?.list === list.get())).toBe(true);
});

test("waiters who come back at once hear of a steady stream of changes ten times a second", async () => {
  const { clock, list, waiters } = setUpList();
  let told = 0;
  const comeBack = (etag: string) => {
    const has = ({ hash }: Representation) => hash === etag;
    const signal = new AbortController().signal;
    const answer = (next: Representation | undefined) => {
      told += 1;
      queueMicrotask(() => comeBack(next?.hash ?? ""));
    };
    waiters.hold({ has, waitMs: 60_000, signal, answer });
  };
  for (let client = 0; client < 20; client += 1) comeBack(list.get().hash);
  for (let ms = 1; ms <= 2000; ms += 1) {
    list.change(`${ms}`);
    await clock.run(1);
  }
  expect(list.made).toBeLessThanOrEqual(21);
  expect(list.made).toBeGreaterThan(18);
  expect(told).toBe(20 * list.made);
});

test("waiters who come with old lists, one after the other, do not have it made for each", async () => {
  const { clock, list, waiters } = setUpList();
  for (let ms = 0; ms < 1000; ms += 1) {
    list.change(`${ms}`);
    waitOn(waiters, clock, { etag: `old ${ms}` });
    await clock.run(1);
  }
  // One more for each time that nobody is waiting: the next to come may have to be refused.
  expect(list.made).toBeLessThanOrEqual(22);
});

test("the second of two changes is told a tenth of a second after the first", async () => {
  const { clock, list, waiters } = setUpList();
  const early = waitOn(waiters, clock);
  await clock.run(1000);
  list.change("1");
  await clock.run(0);
  expect(early.told?.afterMs).toBe(1000);
  const next = waitOn(waiters, clock);
  await clock.run(10);
  list.change("2");
  await clock.run(89);
  expect(next.told).toBeUndefined();
  await clock.run(1);
  expect(next.told).toEqual({ list: list.get(), afterMs: 100 });
});

test("a list that takes long to make is made less often, but after two seconds again", async () => {
  for (const [makingMs, quietMs] of [
    [50, 450],
    [1000, 2000],
  ] as const) {
    const { clock, list, waiters } = setUpList();
    list.makingMs = makingMs;
    waitOn(waiters, clock);
    await clock.run(1000);
    list.change("1");
    await clock.run(0);
    const next = waitOn(waiters, clock);
    list.makingMs = 0;
    list.change("2");
    await clock.run(quietMs - 1);
    expect(next.told).toBeUndefined();
    await clock.run(1);
    expect(next.told?.list).toBe(list.get());
  }
});

/** Clients each of which takes a while to be told, as sending takes it. */
function waitSlowly(waiters: ListWaiters, clock: SteppedClock, count: number, takesMs: number) {
  const zero = new Representation("0").hash;
  return Array.from({ length: count }, () => {
    const controller = new AbortController();
    const client = { told: undefined as Representation | undefined, isOver: false, controller };
    waiters.hold({
      has: ({ hash }) => hash === zero,
      waitMs: 60_000,
      signal: controller.signal,
      answer(list) {
        client.told = list;
        client.isOver = true;
        queueMicrotask(() => clock.pause(takesMs));
      },
    });
    return client;
  });
}

/** Lets everything happen that needs no turn of the event loop. */
async function withinTurn(): Promise<void> {
  for (let step = 0; step < 100; step += 1) await undefined;
}

test("other requests have their turn while a great many are told", async () => {
  const { clock, list, waiters } = setUpList();
  const clients = waitSlowly(waiters, clock, 10, limits.waitersTurnMs / 2);
  const told = () => clients.filter(({ isOver }) => isOver).length;
  await clock.run(1000);
  list.change("1");
  clock.advance(0);
  await withinTurn();
  expect(told()).toBe(2);
  clock.wake();
  await withinTurn();
  expect(told()).toBe(4);
  await clock.run(1000);
  expect(told()).toBe(10);
});

test("what changes, who comes and who leaves while many are told is not forgotten", async () => {
  const { clock, list, waiters } = setUpList();
  const slow = waitSlowly(waiters, clock, 10, limits.waitersTurnMs);
  await clock.run(1000);
  list.change("1");
  clock.advance(0);
  await withinTurn();
  expect(slow.at(-1)?.isOver).toBe(false);
  slow.at(-1)?.controller.abort();
  const newcomer = waitOn(waiters, clock);
  list.change("2");
  await clock.run(5000);
  expect(slow.map(({ told }) => told === undefined)).toEqual([...Array(9).fill(false), true]);
  expect(newcomer.told?.list).toBe(list.get());
  expect(waiters.count).toBe(0);
  expect(clock.timers).toBe(0);
});

test("a change in the very moment of a look is told at once", async () => {
  const { clock, list, waiters } = setUpList();
  const zero = list.get().hash;
  let looks = 0;
  let told: Representation | undefined;
  waiters.hold({
    has({ hash }) {
      looks += 1;
      if (looks === 1) queueMicrotask(() => list.change("1"));
      return hash === zero;
    },
    waitMs: 60_000,
    signal: new AbortController().signal,
    answer(list) {
      told = list;
    },
  });
  await clock.run(1);
  expect(told).toBe(list.get());
});

test("while the list can't be told, nobody waits for it", () => {
  const clock = new SteppedClock();
  const list = () => {
    throw new Error("not yet");
  };
  const waiters = new ListWaiters({ list, isFull: () => false, clock });
  const { signal } = new AbortController();
  const client = { has: () => true, waitMs: 1000, signal, answer() {} };
  expect(() => waiters.hold(client)).toThrow("not yet");
  expect(waiters.count).toBe(0);
  expect(clock.timers).toBe(0);
});
