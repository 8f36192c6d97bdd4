import { describe, expect, spyOn, test } from "bun:test";
import { type Registration, sortKey } from "../../../src/pools/pool.ts";
import { decode, encode, type Item } from "../../../src/registrations/dynamodb/item.ts";
import { DynamoStore, type DynamoStoreOptions } from "../../../src/registrations/dynamodb/store.ts";
import { TableError, type Write } from "../../../src/registrations/dynamodb/table.ts";
import type { LivePools } from "../../../src/registrations/store.ts";
import { ServiceError } from "../../../src/runtime/errors.ts";
import { limits } from "../../../src/runtime/limits.ts";
import { RunClock } from "../../../src/runtime/run-clock.ts";
import { describeStore, LEASE_SECS } from "../../conformance/store.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FakeTable } from "../../support/fake-table.ts";
import { makeKey, makeRegistration } from "../../support/pools.ts";
import { recordedLog } from "../../support/recorded-log.ts";

const REGION = "us-west-2";
const ELSEWHERE = "eu-central-1";

/** Lets everything that needs no time happen. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

interface Setting extends Partial<DynamoStoreOptions> {
  readonly sharedTable?: FakeTable;
  readonly sharedClock?: FakeClock;
}

/** A store over a fake table: lease 15 s, poll 2 s, skew 2 s, grace 30 s. */
function make(setting: Setting = {}) {
  const table = setting.sharedTable ?? new FakeTable();
  const clock = setting.sharedClock ?? new FakeClock();
  const { log, lines } = recordedLog();
  const runClock = new RunClock(clock, () => {});
  const pools = new Map<string, Registration>();
  let changes = 0;
  const livePools: LivePools = {
    put(id, registration) {
      pools.set(id, registration);
      changes += 1;
    },
    remove(id) {
      expect(pools.delete(id)).toBe(true);
      changes += 1;
    },
  };
  const store = new DynamoStore({
    table,
    region: REGION,
    leaseSecs: LEASE_SECS,
    heartbeatIntervalSecs: 5,
    pollIntervalSecs: 2,
    replicationGraceSecs: 30,
    skewSecs: 2,
    livePools,
    clock,
    runClock,
    log,
    ...setting,
  });
  runClock.start(() => store.expire());
  const live = () => {
    store.expire();
    return [...pools.keys()].map((name) => name.split("/")[2]).sort();
  };
  /** Time passes in steps, and what it sets off gets to happen in between. */
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(Math.min(250, left));
      await settle();
    }
  };
  return {
    store,
    table,
    clock,
    runClock,
    lines,
    pools,
    live,
    advance,
    changes: () => changes,
    warnings: () => lines.filter(({ level }) => level === "warn"),
  };
}

async function opened(setting: Setting = {}) {
  const made = make(setting);
  await made.store.open();
  return made;
}

const registrationOf = (name: string) => makeRegistration({ key: makeKey(name) });

/** An item as another replica would write it. */
function itemOf(
  registration: Registration,
  renewedAtMs: number,
  { writtenIn = REGION, leaseSecs = LEASE_SECS } = {},
): [string, Item] {
  const renewal = { renewedAtMs, leaseSecs, writtenIn };
  return [sortKey(registration.key), encode(JSON.stringify(registration), renewal)];
}

describeStore("DynamoDB store", async (livePools) => {
  const made = await opened({ livePools, skewSecs: 0 });
  return {
    store: made.store,
    advance: made.advance,
    pause: (ms) => made.clock.pause(ms),
    wake: () => made.clock.wake(),
    warnings: () =>
      made
        .warnings()
        .map(({ message, fields }) =>
          [message, ...Object.entries(fields).map(([name, value]) => `${name}=${value}`)].join(" "),
        ),
  };
});

describe("who is live", () => {
  test("is lease and skew after the renewal, to the millisecond on the wall clock", async () => {
    const { table, clock, store, live } = make();
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    await store.open();
    clock.setWall(clock.wallMs() + (LEASE_SECS + 2) * 1000);
    expect(live()).toEqual(["a"]);
    clock.setWall(clock.wallMs() + 1);
    expect(live()).toEqual([]);
  });

  test("goes by the lease that the writer granted", async () => {
    const { table, clock, store, live } = make();
    table.put(...itemOf(registrationOf("a"), clock.wallMs(), { leaseSecs: 100 }));
    await store.open();
    clock.setWall(clock.wallMs() + 102_000);
    expect(live()).toEqual(["a"]);
    clock.setWall(clock.wallMs() + 1);
    expect(live()).toEqual([]);
  });

  test.each([
    ["behind by the skew", -2000, true],
    ["behind by more than the skew", -2001, false],
    ["ahead by the skew", 2000, true],
    ["ahead by more", 20_000, true],
  ])("a writer's clock that is %s: a fresh lease at its end", async (_, offsetMs, isLive) => {
    const { table, clock, store, live } = make();
    table.put(...itemOf(registrationOf("a"), clock.wallMs() + offsetMs));
    clock.pause(LEASE_SECS * 1000);
    await store.open();
    expect(live()).toEqual(isLive ? ["a"] : []);
  });

  test("a pool of another region stays for the grace, and while it does the list is not complete", async () => {
    const { table, clock, store, live, advance } = await opened();
    await advance(LEASE_SECS * 1000 + 250);
    table.put(...itemOf(registrationOf("near"), clock.wallMs()));
    table.put(...itemOf(registrationOf("far"), clock.wallMs(), { writtenIn: ELSEWHERE }));
    const renewedAtMs = clock.wallMs();
    const at = async (ms: number) => {
      await advance(renewedAtMs + ms - clock.wallMs());
      return { live: live(), isComplete: store.isComplete() };
    };
    expect(await at(17_000)).toEqual({ live: ["far", "near"], isComplete: true });
    expect(await at(17_001)).toEqual({ live: ["far"], isComplete: false });
    expect(await at(47_000)).toEqual({ live: ["far"], isComplete: false });
    expect(await at(47_001)).toEqual({ live: [], isComplete: true });
  });

  test("a pool of another region that is renewed within the grace is as live as any", async () => {
    const { table, clock, store, live, advance } = await opened();
    table.put(...itemOf(registrationOf("far"), clock.wallMs(), { writtenIn: ELSEWHERE }));
    await advance(20_000);
    expect(store.isComplete()).toBe(false);
    table.put(...itemOf(registrationOf("far"), clock.wallMs(), { writtenIn: ELSEWHERE }));
    await advance(2500);
    expect({ live: live(), isComplete: store.isComplete() }).toEqual({
      live: ["far"],
      isComplete: true,
    });
  });

  test("a pool in its grace that registers here is as live as any, at once", async () => {
    const { table, clock, store, live, advance } = await opened();
    table.put(...itemOf(registrationOf("far"), clock.wallMs(), { writtenIn: ELSEWHERE }));
    await advance(20_000);
    expect(store.isComplete()).toBe(false);
    await store.register(registrationOf("far"));
    expect({ live: live(), isComplete: store.isComplete() }).toEqual({
      live: ["far"],
      isComplete: true,
    });
  });

  test("a wall clock that is set back brings back what it would have listed", async () => {
    const { clock, store, live } = await opened();
    await store.register(registrationOf("a"));
    const wallMs = clock.wallMs();
    clock.setWall(wallMs + 3_600_000);
    expect(live()).toEqual([]);
    clock.setWall(wallMs + 1000);
    expect(live()).toEqual(["a"]);
  });

  test("a renewal in the future by more than the skew is logged, once a minute", async () => {
    const { table, clock, advance, warnings } = await opened();
    table.put(...itemOf(registrationOf("a"), clock.wallMs() + 2000 + 10_000));
    await advance(4000);
    expect(warnings()).toEqual([
      {
        level: "warn",
        message: "pools were renewed in the future: clocks differ by more than the skew",
        fields: { sk: "aws-west/dynamo/a", count: 1 },
      },
    ]);
  });
});

describe("a read", () => {
  test("lists what other replicas wrote, and takes off what is gone from the table", async () => {
    const { table, clock, live, advance } = await opened();
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    await advance(2250);
    expect(live()).toEqual(["a"]);
    table.items.clear();
    await advance(2250);
    expect(live()).toEqual([]);
  });

  test("that began before a local write was answered does not undo it", async () => {
    const { table, store, live, advance, pools } = await opened();
    await store.register(registrationOf("known"));
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    // The page is read before the writes, and comes after them.
    table.beforePage = () => {};
    const items = [...table.items.values()].map(decode);
    table.pages = async function* () {
      await held;
      yield items;
    };
    await advance(2000);
    await store.register(registrationOf("new"));
    await store.register({ ...registrationOf("known"), model: "changed" });
    release();
    await settle();
    expect(live()).toEqual(["known", "new"]);
    expect(pools.get("aws-west/dynamo/known")?.model).toBe("changed");
  });

  test("that began after a local write is the truth, whatever the clocks in it say", async () => {
    const { table, clock, store, live, advance, pools } = await opened();
    await store.register(registrationOf("a"));
    await store.register(registrationOf("gone"));
    table.put(...itemOf({ ...registrationOf("a"), model: "truth" }, clock.wallMs() - 5000));
    table.items.delete("aws-west/dynamo/gone");
    await advance(2250);
    expect(live()).toEqual(["a"]);
    expect(pools.get("aws-west/dynamo/a")?.model).toBe("truth");
  });

  test("that breaks off half-way counts as no read", async () => {
    const { table, clock, live, advance, warnings } = await opened();
    table.pageSize = 1;
    for (const name of ["a", "b", "c"]) table.put(...itemOf(registrationOf(name), clock.wallMs()));
    await advance(2250);
    expect(live()).toEqual(["a", "b", "c"]);
    table.items.delete("aws-west/dynamo/a");
    table.put(...itemOf(registrationOf("d"), clock.wallMs()));
    table.beforePage = (page) => {
      if (page > 1) throw new TableError("error", "page 2 failed");
    };
    await advance(4000);
    expect(live()).toEqual(["a", "b", "c"]);
    expect(warnings().map(({ fields }) => fields)).toEqual([{ reason: "page 2 failed" }]);
    table.beforePage = () => {};
    await advance(2250);
    expect(live()).toEqual(["b", "c", "d"]);
  });

  test("is never one of two at once, and begins one interval after the one before began", async () => {
    const { table, clock, advance } = await opened();
    const beganMs: number[] = [];
    table.beforePage = async () => {
      beganMs.push(clock.monotonicMs());
      await new Promise<void>((resolve) => clock.after(500, resolve));
    };
    await advance(10_000);
    expect(beganMs.map((ms, index) => ms - (beganMs[index - 1] ?? ms))).toEqual([
      0, 2000, 2000, 2000, 2000,
    ]);
    expect(table.mostReadsUnderWay).toBe(1);
    // One that takes longer than the interval is followed by the next at once.
    beganMs.length = 0;
    table.beforePage = async () => {
      beganMs.push(clock.monotonicMs());
      await new Promise<void>((resolve) => clock.after(3000, resolve));
    };
    await advance(10_000);
    expect(beganMs.slice(1).map((ms, index) => ms - (beganMs[index] ?? ms))).toEqual([3000, 3000]);
    expect(table.mostReadsUnderWay).toBe(1);
  });

  test("is spread by a tenth, so that replicas do not read in step", async () => {
    const { table, clock, advance } = await opened();
    const beganMs: number[] = [];
    table.beforePage = () => {
      beganMs.push(clock.monotonicMs());
    };
    clock.random = () => 0;
    await advance(6000);
    const gaps = beganMs.slice(1).map((ms, index) => ms - (beganMs[index] ?? ms));
    expect(gaps).toEqual([1800, 1800]);
    clock.random = () => 0.999;
    beganMs.length = 0;
    await advance(8000);
    expect(Math.round((beganMs[2] ?? 0) - (beganMs[1] ?? 0))).toBe(2200);
  });

  test("that takes longer than 10 s, or the lease where that is shorter, is given up", async () => {
    for (const [leaseSecs, deadlineMs] of [
      [15, 10_000],
      [4, 4000],
    ] as const) {
      const { table, store, advance, clock } = await opened({ leaseSecs });
      await store.register(registrationOf("a"));
      let aborted = 0;
      table.beforePage = (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted = clock.monotonicMs();
            reject(new TableError("timeout", "aborted"));
          });
        });
      await advance(2000);
      const beganMs = clock.monotonicMs();
      await advance(deadlineMs);
      expect(aborted - beganMs).toBe(deadlineMs);
      store.close();
    }
  });

  test("that does not heed its deadline is left behind, and what it finds is dropped", async () => {
    const { table, clock, live, advance } = await opened();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const late = itemOf(registrationOf("a"), clock.wallMs())[1];
    table.pages = async function* () {
      Reflect.deleteProperty(table, "pages");
      await held;
      yield [decode({ sk: { S: "aws-west/dynamo/a" }, ...late })];
    };
    await advance(14_000);
    expect(table.reads).toBeGreaterThan(1);
    release();
    await settle();
    expect(live()).toEqual([]);
  });

  test("while DynamoDB throttles is up to four intervals after the one before", async () => {
    const { table, clock, advance } = await opened();
    const beganMs: number[] = [];
    let fault: TableError | undefined = new TableError("throttled", "slow down");
    table.beforePage = () => {
      beganMs.push(clock.monotonicMs());
      if (fault !== undefined) throw fault;
    };
    await advance(40_000);
    const gaps = () => beganMs.slice(1).map((ms, index) => ms - (beganMs[index] ?? ms));
    expect(gaps()).toEqual([4000, 8000, 8000, 8000, 8000]);
    fault = undefined;
    beganMs.length = 0;
    await advance(12_000);
    expect(gaps().slice(0, 2)).toEqual([2000, 2000]);
  });

  test("that fails in any other way is tried again one interval later", async () => {
    const { table, clock, advance, lines } = await opened();
    const beganMs: number[] = [];
    table.beforePage = () => {
      beganMs.push(clock.monotonicMs());
      throw new TableError("error", "broken");
    };
    await advance(10_000);
    expect(beganMs.slice(1).every((ms, index) => ms - (beganMs[index] ?? 0) === 2000)).toBe(true);
    table.beforePage = () => {};
    await advance(2250);
    expect(lines.map(({ message }) => message)).toContain("the table is read again");
  });

  test("parses nothing for an item whose registration is unchanged", async () => {
    const { table, clock, advance, changes } = await opened();
    for (const name of ["a", "b"]) table.put(...itemOf(registrationOf(name), clock.wallMs()));
    await advance(2250);
    const before = changes();
    const parse = spyOn(JSON, "parse");
    for (const name of ["a", "b"]) table.put(...itemOf(registrationOf(name), clock.wallMs()));
    await advance(2250);
    expect(parse).not.toHaveBeenCalled();
    table.put(...itemOf({ ...registrationOf("a"), model: "new" }, clock.wallMs()));
    await advance(2250);
    expect(parse).toHaveBeenCalledTimes(1);
    parse.mockRestore();
    expect(changes()).toBe(before + 1);
  });
});

describe("while the table can't be read", () => {
  test("leases lapse all the same, and after three intervals the list is not complete", async () => {
    const { table, store, live, advance } = await opened();
    await advance(LEASE_SECS * 1000 + 1000);
    await store.register(registrationOf("a"));
    // The last read began now.
    const reads = table.reads;
    while (table.reads === reads) await advance(250);
    table.beforePage = () => {
      throw new TableError("error", "down");
    };
    await advance(6000);
    expect(store.isComplete()).toBe(true);
    await advance(1);
    expect(store.isComplete()).toBe(false);
    expect(live()).toEqual(["a"]);
    await advance(LEASE_SECS * 1000 + 2000 - 6000);
    expect(live()).toEqual([]);
    table.beforePage = () => {};
    await advance(2250);
    expect(store.isComplete()).toBe(true);
  });

  test("a pool that registers here is listed and stays", async () => {
    const { table, store, live, advance } = await opened();
    table.beforePage = () => {
      throw new TableError("error", "down");
    };
    for (let round = 0; round < 10; round += 1) {
      await store.register(registrationOf("a"));
      await advance(5000);
      expect(live()).toEqual(["a"]);
    }
  });
});

describe("a pause of the process", () => {
  test("is left out until the next read has succeeded, and the list is not complete", async () => {
    const { table, clock, store, live, advance } = await opened();
    await advance(LEASE_SECS * 1000 + 1000);
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    await advance(2250);
    expect(store.isComplete()).toBe(true);
    table.beforePage = () => {
      throw new TableError("error", "down");
    };
    clock.pause(3 * LEASE_SECS * 1000);
    expect(live()).toEqual(["a"]);
    expect(store.isComplete()).toBe(false);
    clock.wake();
    await settle();
    // The read failed, so the lease goes on from where it was.
    expect(live()).toEqual(["a"]);
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    table.beforePage = () => {};
    await advance(2250);
    expect(live()).toEqual(["a"]);
    table.put(...itemOf(registrationOf("a"), clock.wallMs() - 20_000));
    await advance(2250);
    expect(live()).toEqual([]);
  });

  test("in the middle of a read makes it no read: what it found is of before the pause", async () => {
    const { table, clock, live, advance } = await opened();
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    await advance(2250);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    table.beforePage = () => held;
    await advance(2000);
    clock.pause(8000);
    release();
    await settle();
    clock.pause(1000);
    clock.pause(8000);
    expect(live()).toEqual(["a"]);
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    table.beforePage = () => {};
    clock.wake();
    await settle();
    await advance(2250);
    expect(live()).toEqual(["a"]);
  });
});

describe("an item that can't be decoded", () => {
  const good = itemOf(registrationOf("a"), 0)[1];
  const withNow = (clock: FakeClock): Item => ({
    ...good,
    renewed_at: { N: String(clock.wallMs()) },
  });

  test.each([
    ["without a registration", { registration: undefined }],
    ["with a registration that is no text", { registration: { B: new Uint8Array() } }],
    ["with broken JSON", { registration: { S: '{"key":' } }],
    ["with JSON of another shape", { registration: { S: "[]" } }],
    [
      "with the registration of another pool",
      { registration: { S: JSON.stringify(registrationOf("b")) } },
    ],
    ["without a lease", { lease_s: undefined }],
    ["with a lease that is no number", { lease_s: { S: "15" } }],
    ["without a time", { renewed_at: undefined }],
    ["without a region", { written_in: undefined }],
    ["with a region that is no text", { written_in: { N: "1" } }],
  ] satisfies [string, Record<string, unknown>][])(
    "%s is skipped and logged once, and the list is not complete",
    async (_, change) => {
      const { table, clock, store, live, advance, warnings } = await opened();
      await advance(LEASE_SECS * 1000 + 1000);
      const attributes = Object.entries({ ...withNow(clock), ...change });
      table.put(
        "aws-west/dynamo/a",
        // What is undefined is not there.
        Object.fromEntries(attributes.filter(([, value]) => value !== undefined)) as Item,
      );
      table.put(...itemOf(registrationOf("b"), clock.wallMs()));
      await advance(6250);
      expect(live()).toEqual(["b"]);
      expect(store.isComplete()).toBe(false);
      expect(warnings()).toEqual([
        {
          level: "warn",
          message: "an item of the table can't be decoded and is left out",
          fields: { sk: "aws-west/dynamo/a" },
        },
      ]);
      // A registration of this pool mends it.
      await store.register(registrationOf("a"));
      expect(live()).toEqual(["a", "b"]);
      expect(store.isComplete()).toBe(true);
    },
  );

  test("does not matter once its lease has lapsed", async () => {
    const { table, clock, store, advance, warnings } = await opened();
    await advance(LEASE_SECS * 1000 + 1000);
    table.put("aws-west/dynamo/a", { ...withNow(clock), registration: { S: "broken" } });
    const renewedAtMs = clock.wallMs();
    await advance(17_000);
    expect(store.isComplete()).toBe(false);
    await advance(renewedAtMs + 17_001 - clock.wallMs());
    expect(store.isComplete()).toBe(true);
    table.put("aws-west/dynamo/c", { ...good, registration: { S: "long dead" } });
    await advance(4000);
    expect(store.isComplete()).toBe(true);
    expect(warnings()).toHaveLength(1);
  });

  test("may be more than was expected: attributes and fields of a newer version are ignored", async () => {
    const { table, clock, store, live } = make();
    const text = JSON.stringify({ ...registrationOf("a"), added_later: { deep: [] } });
    table.put("aws-west/dynamo/a", {
      ...withNow(clock),
      registration: { S: text },
      added_later: { M: {} },
      expires_at: { S: "never" },
    });
    await store.open();
    expect(live()).toEqual(["a"]);
  });
});

describe("a write", () => {
  test("is one item with the layout of the reference", async () => {
    const { table, clock, store } = await opened();
    const key = makeKey("50%/a", { cluster_id: "__proto__" });
    await store.register(makeRegistration({ key }));
    const nowMs = clock.wallMs();
    expect([...table.items]).toEqual([
      [
        "__proto__/dynamo/50%25%2Fa",
        {
          pk: { S: "pool" },
          sk: { S: "__proto__/dynamo/50%25%2Fa" },
          registration: { S: JSON.stringify(makeRegistration({ key })) },
          renewed_at: { N: String(nowMs) },
          lease_s: { N: "15" },
          written_in: { S: REGION },
          expires_at: { N: String(Math.floor(nowMs / 1000) + 604_800) },
        },
      ],
    ]);
  });

  test("works before the first read too", async () => {
    const { table, store, live } = make();
    const { promise: never } = Promise.withResolvers<void>();
    table.beforePage = () => never;
    void store.open();
    await settle();
    expect(store.unreadyReason()).toBe("the table has not been read yet");
    await store.register(registrationOf("a"));
    expect(live()).toEqual(["a"]);
  });

  test("that fails is 503 with its reason, and nothing changes here", async () => {
    const { table, store, live } = await opened();
    table.beforeWrite = () => {
      throw new TableError("denied", "AWS denies it");
    };
    await expect(store.register(registrationOf("a"))).rejects.toThrow(
      new ServiceError("unavailable", "the registration was not kept: AWS denies it"),
    );
    expect(live()).toEqual([]);
  });

  test("that takes longer than half the heartbeat is 503; that it was made does no harm", async () => {
    const { table, clock, store, live, advance } = await opened({ pollIntervalSecs: 4 });
    table.afterWrite = () => new Promise(() => {});
    const answer = store.register(registrationOf("a")).catch((error: unknown) => error);
    await settle();
    clock.advance(2499);
    await settle();
    expect(live()).toEqual([]);
    clock.advance(1);
    expect(await answer).toEqual(
      new ServiceError(
        "unavailable",
        "the registration was not kept: DynamoDB gave no answer within 2.5 s",
      ),
    );
    await advance(4000);
    expect(live()).toEqual(["a"]);
    await advance(LEASE_SECS * 1000 + 2000);
    expect(live()).toEqual([]);
  });

  test("is late once half the heartbeat is over, whether or not the timer has said so", async () => {
    const { table, clock, store } = await opened();
    let write: Write | undefined;
    table.write = (begun) => {
      write = begun;
      return new Promise(() => {});
    };
    void store.register(registrationOf("a"));
    clock.pause(2500);
    expect(write?.isLate()).toBe(false);
    clock.pause(1);
    expect(write?.isLate()).toBe(true);
  });

  test("is late too where only the wall clock went on, as where a virtual machine was suspended", async () => {
    const { table, clock, store } = await opened();
    let write: Write | undefined;
    table.write = (begun) => {
      write = begun;
      return new Promise(() => {});
    };
    void store.register(registrationOf("a"));
    clock.setWall(clock.wallMs() + 2500);
    expect(write?.isLate()).toBe(false);
    clock.setWall(clock.wallMs() + 1);
    expect(write?.isLate()).toBe(true);
  });

  test("whose answer comes before its deadline's timer, but later than that, is 503", async () => {
    const { table, clock, store, live, advance } = await opened();
    table.afterWrite = () => clock.pause(60_000);
    const answer = await store.register(registrationOf("a")).catch((error: unknown) => error);
    expect(answer).toBeInstanceOf(ServiceError);
    clock.wake();
    await advance(2250);
    expect(live()).toEqual([]);
  });

  test("that finds no room for a change of a live pool renews the pool as it was", async () => {
    const { store, live, advance, pools } = await opened();
    const size = limits.registrationBytes / 2;
    await store.register({ ...registrationOf("large"), model: "m".repeat(size) });
    await store.register(registrationOf("small"));
    for (let round = 0; round < 3; round += 1) {
      await advance(10_000);
      await store.register({ ...registrationOf("large"), model: "m".repeat(size) });
      const grown = { ...registrationOf("small"), model: "n".repeat(size) };
      const refusal = await store.register(grown).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(ServiceError);
    }
    expect(live()).toEqual(["large", "small"]);
    expect(pools.get("aws-west/dynamo/small")).toEqual(registrationOf("small"));
    const added = await store
      .register({ ...registrationOf("new"), model: "n".repeat(size) })
      .catch((error: unknown) => error);
    expect(added).toBeInstanceOf(ServiceError);
    expect(live()).toEqual(["large", "small"]);
  });

  test("of the same registration in another order writes the text that is there", async () => {
    const table = new FakeTable();
    const clock = new FakeClock();
    const ordered = (...capabilities: string[]) => makeRegistration({ capabilities });
    const text = () => table.items.get("aws-west/dynamo/mocker-west-1")?.registration?.S;
    const one = await opened({ sharedTable: table, sharedClock: clock });
    await one.store.register(ordered("x", "y"));
    const first = text();
    // Two replicas: one that has read the table, and one that could not yet.
    const two = await opened({ sharedTable: table, sharedClock: clock });
    await two.store.register(ordered("y", "x"));
    expect(text()).toBe(first);
    const three = make({ sharedTable: table, sharedClock: clock });
    await three.store.register(ordered("y", "x"));
    expect(text()).toBe(first);
    for (const { pools, warnings } of [one, two, three]) {
      expect([...pools.values()]).toEqual([ordered("x", "y")]);
      expect(warnings()).toEqual([]);
    }
  });

  test("of a registration that was not read yet is one, and two where it differs", async () => {
    const table = new FakeTable();
    const { store } = make({ sharedTable: table });
    await make({ sharedTable: table }).store.register(
      makeRegistration({ capabilities: ["x", "y"] }),
    );
    expect(table.writes).toBe(1);
    await store.register(makeRegistration({ capabilities: ["y", "x"] }));
    expect(table.writes).toBe(2);
    const other = make({ sharedTable: table });
    await other.store.register(makeRegistration({ capabilities: ["z"] }));
    expect(table.writes).toBe(4);
    expect([...other.pools.values()]).toEqual([makeRegistration({ capabilities: ["z"] })]);
    const text = table.items.get("aws-west/dynamo/mocker-west-1")?.registration?.S;
    expect(text).toBe(JSON.stringify(makeRegistration({ capabilities: ["z"] })));
    expect(other.warnings()).toHaveLength(1);
  });

  test("mends a registration in the table that is none", async () => {
    for (const registration of [{ S: "broken" }, { N: "5" }]) {
      const { table, store, live } = make();
      table.put("aws-west/dynamo/a", { registration });
      await store.register(registrationOf("a"));
      expect(live()).toEqual(["a"]);
      const text = table.items.get("aws-west/dynamo/a")?.registration?.S;
      expect(text).toBe(JSON.stringify(registrationOf("a")));
    }
  });

  test("that differs from what a relay wrote through another replica is a disagreement", async () => {
    const table = new FakeTable();
    const clock = new FakeClock();
    const one = await opened({ sharedTable: table, sharedClock: clock });
    const two = await opened({ sharedTable: table, sharedClock: clock });
    await one.store.register(makeRegistration());
    await two.store.register(makeRegistration({ model: "other" }));
    expect(two.warnings()).toEqual([
      {
        level: "warn",
        message: "a registration replaced one that differs",
        fields: { pool: "aws-west/dynamo/mocker-west-1", fields: "model", count: 1 },
      },
    ]);
    // One that differs from a pool that has long left disagrees with nobody.
    clock.pause(900);
    clock.setWall(clock.wallMs() + 60_000);
    await one.store.register(makeRegistration({ model: "third" }));
    expect(one.warnings()).toEqual([]);
  });
});

describe("writes of one pool that are under way at once", () => {
  /** A store, which knows pool a or doesn't, whose table takes and answers writes as the test says. */
  async function held(isKnown = true) {
    const made = await opened();
    if (isKnown) await made.store.register(registrationOf("a"));
    const take: (() => void)[] = [];
    const answer: (() => void)[] = [];
    let taken = 0;
    made.table.beforeWrite = () => new Promise((resolve) => take.push(resolve));
    made.table.afterWrite = () => {
      const number = taken;
      return new Promise((resolve) => {
        answer[number] = resolve;
      });
    };
    return {
      ...made,
      /** Begins a write, and says its number. */
      begin: async (model: string) => {
        void made.store.register({ ...registrationOf("a"), model });
        await settle();
        return take.length - 1;
      },
      take: async (number: number) => {
        taken = number;
        take[number]?.();
        await settle();
      },
      answer: async (number: number) => {
        answer[number]?.();
        await settle();
      },
      model: () => made.pools.get("aws-west/dynamo/a")?.model,
      setBack: (ms: number) => made.clock.setWall(made.clock.wallMs() - ms),
      /** What is live at the end of a lease in which no read tells what the table has. */
      liveAfterLease: async () => {
        made.table.beforePage = () => {
          throw new TableError("error", "no read");
        };
        await made.advance(LEASE_SECS * 1000);
        return made.live();
      },
    };
  }

  for (const last of ["first", "second"] as const) {
    for (const order of ["in turn", "the other way round"]) {
      test(`leave what the table took last, where it took the ${last} last and they are answered ${order}`, async () => {
        const { begin, take, answer, clock, model } = await held();
        const first = await begin("first");
        clock.advance(100);
        const second = await begin("second");
        for (const write of last === "first" ? [second, first] : [first, second]) await take(write);
        for (const write of order === "in turn" ? [first, second] : [second, first]) {
          await answer(write);
        }
        expect(model()).toBe(last);
      });
    }
  }

  test("leave the later lease, though the other was begun while the wall clock was set back", async () => {
    const { begin, take, answer, setBack, liveAfterLease } = await held();
    setBack(7000);
    const first = await begin("same");
    setBack(-7000);
    const second = await begin("same");
    await take(first);
    await take(second);
    await answer(second);
    await answer(first);
    expect(await liveAfterLease()).toEqual(["a"]);
  });

  test("leave the later lease where two were begun in one moment, and the other came between", async () => {
    const { begin, take, answer, setBack, liveAfterLease } = await held();
    const first = await begin("same");
    setBack(7000);
    const second = await begin("same");
    setBack(-7000);
    const third = await begin("same");
    for (const write of [first, second, third]) await take(write);
    for (const write of [third, first, second]) await answer(write);
    expect(await liveAfterLease()).toEqual(["a"]);
  });

  test("leave the later lease where the write of another replica came between them", async () => {
    const { begin, take, answer, setBack, liveAfterLease, table, clock } = await held();
    setBack(7000);
    const first = await begin("first");
    setBack(-7000);
    const second = await begin("second");
    await take(first);
    table.put(...itemOf({ ...registrationOf("a"), model: "third" }, clock.wallMs() - 1));
    await take(second);
    await answer(second);
    await answer(first);
    expect(await liveAfterLease()).toEqual(["a"]);
  });

  test("are listed once they are answered, whatever a read has found that began before that", async () => {
    for (const isLast of [false, true]) {
      const { begin, take, answer, advance, table, clock, model } = await held();
      const number = await begin("ours");
      if (!isLast) await take(number);
      // By a clock that is ahead, within the skew.
      const theirs = () =>
        itemOf({ ...registrationOf("a"), model: "theirs" }, clock.wallMs() + 1500);
      table.put(...theirs());
      await advance(2000);
      expect(model()).toBe("theirs");
      clock.advance(100);
      table.put(...theirs());
      if (isLast) await take(number);
      await answer(number);
      expect(model()).toBe("ours");
      await advance(2300);
      expect(model()).toBe(isLast ? "ours" : "theirs");
    }
  });

  test("leave what the table took last, where an item was not read yet and took two writes", async () => {
    for (const isOtherFirst of [true, false]) {
      const { begin, take, answer, clock, model } = await held(false);
      const ours = await begin("ours");
      clock.advance(100);
      const other = await begin("other");
      await take(other);
      await take(ours);
      await answer(ours);
      const again = other + 1;
      await take(again);
      await answer(isOtherFirst ? other : again);
      await answer(isOtherFirst ? again : other);
      expect(model()).toBe("ours");
    }
  });
});

describe("operations on the table", () => {
  const ok = { ok: 1, throttled: 0, timeout: 0, denied: 0, error: 0 };

  test("are counted by what became of them: reads, each of the whole table", async () => {
    const { table, clock, store, advance } = await opened();
    const { results, duration } = store.table().reads;
    expect(results).toEqual(ok);
    table.beforePage = async () => {
      await undefined;
      clock.pause(700);
    };
    await advance(2250);
    expect(results.ok).toBe(2);
    expect(duration.sumSecs).toBe(0.7);
    for (const fault of ["throttled", "timeout", "denied", "error"] as const) {
      const before = results[fault];
      table.beforePage = () => {
        throw new TableError(fault, "broken");
      };
      await advance(2250);
      expect(results[fault]).toBe(before + 1);
      table.beforePage = () => {};
      await advance(10_000);
    }
    // One that never ends.
    table.beforePage = () => new Promise(() => {});
    await advance(12_000);
    expect(results.timeout).toBe(2);
  });

  test("are counted by what became of them: writes, one for each registration", async () => {
    const sharedTable = new FakeTable();
    const { table, clock, store } = make({ sharedTable });
    await make({ sharedTable }).store.register(makeRegistration({ model: "first" }));
    const { results, duration } = store.table().writes;
    table.afterWrite = () => clock.pause(300);
    // It takes two requests, since the item has not been read and differs.
    await store.register(makeRegistration({ model: "second" }));
    expect(results).toEqual(ok);
    expect(duration.sumSecs).toBe(0.6);
    for (const fault of ["throttled", "timeout", "denied", "error"] as const) {
      table.beforeWrite = () => {
        throw new TableError(fault, "broken");
      };
      await store.register(makeRegistration()).catch(() => {});
      expect(results[fault]).toBe(1);
    }
    expect(store.counts).toMatchObject({ changed: 1, failed: 4, renewed: 0 });
    expect(duration.cumulativeCounts().at(-1)).toBe(5);
  });

  test("that a pool of another replica is renewed by is a renewal", async () => {
    const sharedTable = new FakeTable();
    const sharedClock = new FakeClock();
    const one = await opened({ sharedTable, sharedClock });
    const two = await opened({ sharedTable, sharedClock });
    await one.store.register(makeRegistration());
    await two.store.register(makeRegistration());
    expect(one.store.counts).toMatchObject({ added: 1, renewed: 0 });
    expect(two.store.counts).toMatchObject({ added: 0, renewed: 1 });
  });
});

describe("starting", () => {
  test("lists what the table holds, and says when it can't yet", async () => {
    const { table, clock, store, live, advance, lines } = make();
    table.put(...itemOf(registrationOf("a"), clock.wallMs()));
    table.onCheck = () => {
      throw new TableError("error", "cannot reach DynamoDB");
    };
    const ready = store.open();
    await settle();
    expect(store.unreadyReason()).toBe("the table has not been read yet: cannot reach DynamoDB");
    await advance(10_000);
    // After about 1, 2, 4 and 5 s.
    expect(table.checks).toBe(4);
    table.onCheck = () => ["there is no TTL"];
    await advance(5000);
    await ready;
    expect(store.unreadyReason()).toBeUndefined();
    expect(live()).toEqual(["a"]);
    expect(lines.map(({ message }) => message)).toContain("the check of the table found something");
  });

  test("ends where trying again can't help", async () => {
    const { table, store } = make();
    table.onCheck = () => {
      throw new TableError("error", "there is no table", { isDefinite: true });
    };
    await expect(store.open()).rejects.toThrow(new ServiceError("startup", "there is no table"));
  });

  test("does not check again what it has checked", async () => {
    const { table, store, advance } = make();
    table.beforePage = () => {
      throw new TableError("throttled", "slow down");
    };
    void store.open();
    await advance(20_000);
    expect(table.checks).toBe(1);
    expect(table.reads).toBeGreaterThan(3);
    table.beforePage = () => {};
    await advance(6000);
    expect(store.unreadyReason()).toBeUndefined();
  });

  test("and stopping leaves no timer behind", async () => {
    const { table, store, clock, advance } = await opened();
    await advance(5000);
    store.close();
    const reads = table.reads;
    await advance(10_000);
    expect(table.reads).toBe(reads);
    expect(table.isClosed).toBe(true);
    // The beat is the test's own.
    expect(clock.timers).toBe(1);
  });
});
