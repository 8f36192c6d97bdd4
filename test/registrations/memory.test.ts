import { expect, test } from "bun:test";
import fc from "fast-check";
import { keyOf, sortKey } from "../../src/pools/pool.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import type { LivePools } from "../../src/registrations/store.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { limits } from "../../src/runtime/limits.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { describeStore, LEASE_SECS } from "../conformance/store.ts";
import { anyKey } from "../support/arbitraries.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeKey, makeRegistration, send } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";

function open(livePools: LivePools) {
  const clock = new FakeClock();
  const { log, lines } = recordedLog();
  const runClock = new RunClock(clock, () => {});
  const store = new MemoryStore({ leaseSecs: LEASE_SECS, livePools, clock, runClock, log });
  runClock.start(() => store.expire());
  return {
    store,
    lines,
    clock,
    advance: (ms: number) => clock.advance(ms),
    pause: (ms: number) => clock.pause(ms),
    wake: () => clock.wake(),
    warnings: () =>
      lines
        .filter(({ level }) => level === "warn")
        .map(({ message, fields }) =>
          [message, ...Object.entries(fields).map(([name, value]) => `${name}=${value}`)].join(" "),
        ),
  };
}

const ignored: LivePools = { put() {}, remove() {} };

describeStore("memory store", open);

test("the log tells of pools that are added and expire, never of a heartbeat", () => {
  const { store, lines, advance } = open(ignored);
  for (let round = 0; round < 5; round += 1) {
    send(store, makeRegistration());
    advance(5000);
  }
  expect(lines).toEqual([
    { level: "info", message: "pool added", fields: { pool: "aws-west/dynamo/mocker-west-1" } },
  ]);
  advance(LEASE_SECS * 1000);
  expect(lines.at(-1)).toEqual({
    level: "info",
    message: "pool expired",
    fields: { pool: "aws-west/dynamo/mocker-west-1" },
  });
});

test("a pause makes every lease longer, to the millisecond", () => {
  let live = 0;
  const { store, advance, pause, wake } = open({
    put: () => (live += 1),
    remove: () => (live -= 1),
  });
  send(store, makeRegistration());
  advance(5000);
  pause(60_000);
  wake();
  advance(10_000);
  expect(live).toBe(1);
  pause(1);
  store.expire();
  expect(live).toBe(0);
});

test("a pause gives no pool that is renewed after it the lease of one that was renewed just before", () => {
  const live = new Set<string>();
  const { store, advance, pause, wake } = open({
    put: (_, { key }) => live.add(key.dgd_name),
    remove: (id) => live.delete(keyOf(id)?.dgd_name ?? ""),
  });
  const [early, late] = ["early", "late"].map((name) => makeRegistration({ key: makeKey(name) }));
  // The last beat before the pause is at 5 s, and what goes on after that counts as no time.
  advance(5100);
  send(store, late ?? makeRegistration());
  pause(2000);
  send(store, early ?? makeRegistration());
  wake();
  advance(LEASE_SECS * 1000);
  expect([...live].sort()).toEqual(["early", "late"]);
  pause(1);
  store.expire();
  expect([...live]).toEqual(["late"]);
});

test("it lists what a simple model lists, whatever happens in whatever order", () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constant("register" as const), key: fc.nat(4) }),
    fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 9000 }) }),
    fc.record({ kind: fc.constant("pause" as const), ms: fc.integer({ min: 1251, max: 60_000 }) }),
  );
  fc.assert(
    fc.property(
      fc.uniqueArray(anyKey, { minLength: 5, maxLength: 5, selector: sortKey }),
      fc.array(action, { maxLength: 40 }),
      (keys, actions) => {
        const live = new Set<string>();
        const { store, advance, pause, wake } = open({
          put: (id) => live.add(id),
          remove: (id) => live.delete(id),
        });
        // How long each pool still has, by a clock that pauses don't move.
        const leftMs = new Map<string, number>();
        for (const step of actions) {
          if (step.kind === "register") {
            const key = keys[step.key] ?? makeKey("never");
            send(store, makeRegistration({ key }));
            leftMs.set(sortKey(key), LEASE_SECS * 1000);
          } else if (step.kind === "advance") {
            // On the beat, so that the model need not know how long ago the last one was.
            const ms = Math.ceil(step.ms / 250) * 250;
            advance(ms);
            for (const [name, left] of leftMs) {
              if (left - ms < 0) leftMs.delete(name);
              else leftMs.set(name, left - ms);
            }
          } else {
            pause(step.ms);
            wake();
          }
          store.expire();
          expect([...live].sort()).toEqual([...leftMs.keys()].sort());
        }
      },
    ),
  );
});

test("above the limit of live pools a new one is refused, renewals go on, and one warning says so", () => {
  let live = 0;
  const { store, lines } = open({ put: () => (live += 1), remove: () => (live -= 1) });
  for (let i = 0; i < limits.livePools; i += 1) {
    send(store, makeRegistration({ key: makeKey(`pool-${i}`) }));
  }
  expect(live).toBe(limits.livePools);
  const over = () => send(store, makeRegistration({ key: makeKey("one more") }));
  expect(over).toThrow(
    new ServiceError("unavailable", "the service holds its limit of 100000 live pools"),
  );
  expect(over).toThrow(ServiceError);
  send(store, makeRegistration({ key: makeKey("pool-0") }));
  expect(live).toBe(limits.livePools);
  expect(lines.filter(({ message }) => message.includes("refused"))).toEqual([
    {
      level: "warn",
      message: "registrations are refused: a limit is reached",
      fields: { limit: "100000 live pools", pool: "aws-west/dynamo/one more" },
    },
  ]);
});

test("memory stays bounded when registrations are large, and room comes back when they end", () => {
  const { store, advance } = open(ignored);
  const large = (i: number, size: number) =>
    makeRegistration({ key: makeKey(`pool-${i}`), model: "m".repeat(size) });
  const size = 1024 * 1024;
  let kept = 0;
  expect(() => {
    for (; kept < 1000; kept += 1) send(store, large(kept, size));
  }).toThrow("the service holds its limit of 67108864 bytes of registrations");
  expect(kept).toBe(63);
  // A pool that is there may renew and shrink, but not grow beyond the limit.
  send(store, large(0, size));
  expect(() => send(store, large(0, 2 * size))).toThrow(ServiceError);
  send(store, large(0, 10));
  send(store, large(kept, size));
  advance(LEASE_SECS * 1000 + 1);
  for (let i = 0; i < kept; i += 1) send(store, large(i, size));
});

test("a live pool whose change finds no room stays listed as it was", () => {
  let live = 0;
  const { store, advance } = open({ put: () => (live += 1), remove: () => (live -= 1) });
  const size = limits.registrationBytes / 2;
  const pool = (name: string, model: string) => makeRegistration({ key: makeKey(name), model });
  send(store, pool("large", "m".repeat(size)));
  send(store, pool("small", "m"));
  for (let round = 0; round < 5; round += 1) {
    advance(10_000);
    send(store, pool("large", "m".repeat(size)));
    expect(() => send(store, pool("small", "n".repeat(size)))).toThrow(ServiceError);
  }
  expect(live).toBe(2);
});

test("a pool is renewed by the text that it was last registered with, and by no other", () => {
  const { store, advance } = open(ignored);
  const first = makeRegistration();
  const second = makeRegistration({ model: "other" });
  const [firstText, secondText] = [JSON.stringify(first), JSON.stringify(second)];
  expect(store.renew(firstText)).toBe(false);
  store.register(first, firstText);
  expect(store.renew(firstText)).toBe(true);
  expect(store.renew(` ${firstText}`)).toBe(false);
  store.register(second, secondText);
  expect(store.renew(firstText)).toBe(false);
  expect(store.renew(secondText)).toBe(true);
  advance(LEASE_SECS * 1000 + 1);
  expect(store.renew(secondText)).toBe(false);
});

test("a change that finds no room is not renewed by its text", () => {
  const { store } = open(ignored);
  const pool = (model: string) => makeRegistration({ model });
  send(store, pool("m"));
  const large = pool("m".repeat(limits.registrationBytes));
  for (let round = 0; round < 2; round += 1) {
    expect(() => send(store, large)).toThrow(ServiceError);
    expect(store.renew(JSON.stringify(pool("m")))).toBe(true);
  }
});

test("texts that are mostly white space are not remembered, so that they take no memory", () => {
  const { store } = open(ignored);
  const text = JSON.stringify(makeRegistration());
  const padded = text + " ".repeat(text.length);
  store.register(makeRegistration(), padded);
  expect(store.renew(padded)).toBe(true);
  store.register(makeRegistration(), `${padded} `);
  expect(store.renew(`${padded} `)).toBe(false);
  expect(store.renew(padded)).toBe(false);
});
