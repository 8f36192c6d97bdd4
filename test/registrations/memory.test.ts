import { expect, test } from "bun:test";
import fc from "fast-check";
import { poolName } from "../../src/pools/pool.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import type { LivePools } from "../../src/registrations/store.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { limits } from "../../src/runtime/limits.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { describeStore, LEASE_SECS } from "../conformance/store.ts";
import { anyKey } from "../support/arbitraries.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeKey, makeRegistration } from "../support/pools.ts";
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
    store.register(makeRegistration());
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
  store.register(makeRegistration());
  advance(5000);
  pause(60_000);
  wake();
  advance(10_000);
  expect(live).toBe(1);
  pause(1);
  store.expire();
  expect(live).toBe(0);
});

test("it lists what a simple model lists, whatever happens in whatever order", () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constant("register" as const), key: fc.nat(4) }),
    fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 9000 }) }),
    fc.record({ kind: fc.constant("pause" as const), ms: fc.integer({ min: 1251, max: 60_000 }) }),
  );
  fc.assert(
    fc.property(
      fc.uniqueArray(anyKey, { minLength: 5, maxLength: 5, selector: poolName }),
      fc.array(action, { maxLength: 40 }),
      (keys, actions) => {
        const live = new Set<string>();
        const { store, advance, pause, wake } = open({
          put: (key) => live.add(poolName(key)),
          remove: (key) => live.delete(poolName(key)),
        });
        // How long each pool still has, by a clock that pauses don't move.
        const leftMs = new Map<string, number>();
        for (const step of actions) {
          if (step.kind === "register") {
            const key = keys[step.key] ?? makeKey("never");
            store.register(makeRegistration({ key }));
            leftMs.set(poolName(key), LEASE_SECS * 1000);
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
    store.register(makeRegistration({ key: makeKey(`pool-${i}`) }));
  }
  expect(live).toBe(limits.livePools);
  const over = () => store.register(makeRegistration({ key: makeKey("one more") }));
  expect(over).toThrow(
    new ServiceError("unavailable", "the service holds its limit of 100000 live pools"),
  );
  expect(over).toThrow(ServiceError);
  store.register(makeRegistration({ key: makeKey("pool-0") }));
  expect(live).toBe(limits.livePools);
  expect(lines.filter(({ level }) => level === "warn")).toEqual([
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
    for (; kept < 1000; kept += 1) store.register(large(kept, size));
  }).toThrow("the service holds its limit of 67108864 bytes of registrations");
  expect(kept).toBe(63);
  // A pool that is there may renew and shrink, but not grow beyond the limit.
  store.register(large(0, size));
  expect(() => store.register(large(0, 2 * size))).toThrow(ServiceError);
  store.register(large(0, 10));
  store.register(large(kept, size));
  advance(LEASE_SECS * 1000 + 1);
  for (let i = 0; i < kept; i += 1) store.register(large(i, size));
});

test("a live pool whose change finds no room stays listed as it was", () => {
  let live = 0;
  const { store, advance } = open({ put: () => (live += 1), remove: () => (live -= 1) });
  const size = limits.registrationBytes / 2;
  const pool = (name: string, model: string) => makeRegistration({ key: makeKey(name), model });
  store.register(pool("large", "m".repeat(size)));
  store.register(pool("small", "m"));
  for (let round = 0; round < 5; round += 1) {
    advance(10_000);
    store.register(pool("large", "m".repeat(size)));
    expect(() => store.register(pool("small", "n".repeat(size)))).toThrow(ServiceError);
  }
  expect(live).toBe(2);
});
