import { describe, expect, test } from "bun:test";
import type { ListedPool } from "../support/relay.ts";
import { Findings } from "./findings.ts";
import { differsFromTruth, judge, type Reading } from "./judge.ts";
import { Pool } from "./pools.ts";
import { Random } from "./random.ts";
import type { ReplicaFacts } from "./replica.ts";
import { LEASE_MS, SLICES_STALE_MS } from "./times.ts";

const NOW_MS = Date.now();

const replica: ReplicaFacts = {
  name: "r",
  url: "http://127.0.0.1",
  process: 1,
  startedAtMs: NOW_MS - 600_000,
  isStopped: false,
  resumedAtMs: 0,
  wokeAtMs: 0,
  pausedMs: () => 0,
  noticedPausesMs: () => 0,
};
const another: ReplicaFacts = { ...replica, name: "another" };

/** A pool that was acknowledged so long ago, by one of the replicas. */
function poolAcknowledged(agoMs: number, by: ReplicaFacts = another): Pool {
  const pool = new Pool("p");
  const atMs = NOW_MS - agoMs;
  pool.noteAcknowledged({ sentAtMs: atMs, answeredAtMs: atMs, replica: by, process: 1 });
  return pool;
}

const shown = (pool: Pool, parts: Partial<ListedPool> = {}): ListedPool => ({
  ...pool.registration,
  relay_identities: [],
  ...parts,
});

/** What is found wrong with a list, over the table unless it is told. */
function found(
  pool: Pool,
  pools: readonly ListedPool[],
  {
    complete = true,
    hasTable = true,
    imported,
    ...parts
  }: {
    readonly complete?: boolean;
    readonly hasTable?: boolean;
    readonly imported?: { readonly relays: readonly string[]; readonly agoMs: number };
  } & Partial<Reading> = {},
): string[] {
  const findings = new Findings(() => {});
  const list = { pools, complete };
  const reading = { replica, process: 1, sentAtMs: NOW_MS, answeredAtMs: NOW_MS, list, ...parts };
  const cluster = imported && {
    importedOf: () => ({ ...imported, frontends: [], sinceMs: NOW_MS - imported.agoMs }),
  };
  judge(reading, { pools: [pool], cluster, hasTable }, findings);
  return findings.violations.map((line) => line.split(" ").slice(1).join(" "));
}

describe("a list is found wrong that", () => {
  test("calls itself complete and lacks a pool that has been acknowledged", () => {
    expect(found(poolAcknowledged(6000), [])).toHaveLength(1);
    expect(found(poolAcknowledged(6000), [], { complete: false })).toEqual([]);
    // The last read may have been before it.
    expect(found(poolAcknowledged(3000), [])).toEqual([]);
    expect(found(poolAcknowledged(LEASE_MS), [])).toEqual([]);
  });

  test("lacks a pool that this very process has acknowledged, complete or not", () => {
    const pool = poolAcknowledged(10, replica);
    for (const complete of [true, false]) expect(found(pool, [], { complete })).toHaveLength(1);
    expect(found(pool, [], { process: 2 })).toEqual([]);
    expect(found(pool, [], { process: undefined })).toEqual([]);
    expect(found(poolAcknowledged(LEASE_MS, replica), [])).toEqual([]);
  });

  test("has a pool long after its last heartbeat, less the pauses", () => {
    const pool = poolAcknowledged(40_000);
    expect(found(pool, [shown(pool)])).toHaveLength(1);
    expect(found(pool, [shown(pool)], { complete: false })).toHaveLength(1);
    const paused = { ...replica, pausedMs: () => 30_000 };
    expect(found(pool, [shown(pool)], { replica: paused })).toEqual([]);
    pool.noteUnanswered({ ...another, isStopped: true });
    expect(found(pool, [shown(pool)])).toEqual([]);
  });

  test("has a pool only because a heartbeat that is under way may have been carried out", async () => {
    const pool = poolAcknowledged(40_000);
    const { promise: answer, resolve } = Promise.withResolvers<Response>();
    using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => answer });
    const silent = { ...another, url: server.url.origin };
    const beat = pool.beat([silent], new Random(1, "beat"), new Findings(() => {}));
    expect(found(pool, [shown(pool)])).toEqual([]);
    resolve(new Response("not now", { status: 503 }));
    await beat;
    expect(found(pool, [shown(pool)])).toEqual([]);
  });

  test("shows what nobody has registered", () => {
    const pool = poolAcknowledged(10);
    expect(found(pool, [shown(pool)])).toEqual([]);
    expect(found(pool, [shown(pool, { model: "version 1" })])).toHaveLength(1);
    expect(found(pool, [shown(pool, { capacity: [] })])).toHaveLength(1);
    pool.change();
    expect(found(pool, [shown(pool)])).toEqual([]);
  });

  test("is complete within a lease of the start or of a pause", () => {
    const pool = poolAcknowledged(10);
    for (const parts of [{ startedAtMs: NOW_MS - 9000 }, { wokeAtMs: NOW_MS - 9000 }]) {
      const fresh = { ...replica, ...parts };
      expect(found(pool, [shown(pool)], { replica: fresh })).toHaveLength(1);
      expect(found(pool, [shown(pool)], { replica: fresh, complete: false })).toEqual([]);
    }
  });

  test("is complete, and joins what has long been imported otherwise", () => {
    const pool = poolAcknowledged(6000);
    const [long, short] = [SLICES_STALE_MS + 1, SLICES_STALE_MS - 1];
    for (const [relays, pools] of [
      [["10.1.0.1"], []],
      [[], [shown(pool)]],
    ] as const) {
      expect(found(pool, pools, { imported: { relays, agoMs: long } })).toHaveLength(1);
      expect(found(pool, pools, { imported: { relays, agoMs: short } })).toEqual([]);
      expect(found(pool, pools, { imported: { relays, agoMs: long }, complete: false })).toEqual(
        [],
      );
    }
  });
});

test("once all is well a list differs from the truth that is not whole, not right or not complete", () => {
  const pool = new Pool("p");
  const truth = { pools: [pool], cluster: undefined, hasTable: true };
  const list = { pools: [shown(pool)], complete: true };
  expect(differsFromTruth(list, truth)).toBeUndefined();
  expect(differsFromTruth({ ...list, complete: false }, truth)).toBe("it is not complete");
  expect(differsFromTruth({ ...list, pools: [] }, truth)).toBe("it lists 0 of 1");
  pool.change();
  expect(differsFromTruth(list, truth)).toStartWith("it shows ");

  const imported = { relays: ["10.1.0.2", "10.1.0.1"], frontends: ["10.2.0.1"], sinceMs: 0 };
  const joined = { ...truth, cluster: { importedOf: () => imported } };
  const relay_identities = ["ip:10.1.0.1", "ip:10.1.0.2"];
  const whole = shown(pool, { relay_identities, frontends: ["http://10.2.0.1:8000/"] });
  expect(differsFromTruth({ ...list, pools: [whole] }, joined)).toBeUndefined();
  expect(differsFromTruth({ ...list, pools: [shown(pool)] }, joined)).toStartWith("it joins ");
});
