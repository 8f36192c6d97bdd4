import { describe, expect, test } from "bun:test";
import type { Directory } from "../../src/directory/directory.ts";
import { ImportedDirectory } from "../../src/directory/imported.ts";
import type { PoolFacts } from "../../src/directory/pool-facts.ts";
import { RegisteredDirectory } from "../../src/directory/registered.ts";
import { responseOf } from "../../src/http/answer.ts";
import { Explainer } from "../../src/http/explain.ts";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { SliceSink } from "../../src/kubernetes/reflector.ts";
import { keyOf, type Registration, sortKey } from "../../src/pools/pool.ts";
import { encode } from "../../src/registrations/dynamodb/item.ts";
import { DynamoStore } from "../../src/registrations/dynamodb/store.ts";
import { TableError } from "../../src/registrations/dynamodb/table.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import type { LivePools, RegistrationStore } from "../../src/registrations/store.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { type Explained, type ExplainedPool, poolOf } from "../support/explained.ts";
import { unwatched } from "../support/facts.ts";
import { FakeTable } from "../support/fake-table.ts";
import { makeKey, makeRegistration, send } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { endpointsAt, karmadaSlice, mcsSlice } from "../support/slices.ts";
import { SteppedClock } from "../support/stepped-clock.ts";

const NAME = "mocker-west-1";
const FRESH = "less than one lease of 15 s has passed since the start";
const NO_RELAYS =
  "no Ready endpoint of Service mocker-west-1-pool-relay is imported from cluster aws-west";

function surroundings() {
  const clock = new SteppedClock();
  const runClock = new RunClock(clock, () => {});
  const { log } = recordedLog();
  return { clock, runClock, log, common: { leaseSecs: 15, clock, runClock, log } };
}

/** What is asked of a directory in the tests. */
function asking({ clock, runClock }: ReturnType<typeof surroundings>, directory: Directory) {
  runClock.start(() => directory.expire());
  const service = {
    version: "1.2.3",
    mode: "registrations",
    store: "memory",
    startedAtMs: clock.monotonicMs(),
    startedAtWallMs: clock.wallMs(),
  };
  const respond = async (headers: Readonly<Record<string, string>> = {}) => {
    const request = new Request("http://x/explain", { headers });
    // One of its own, which need not rest.
    return responseOf(await new Explainer({ directory, service, clock }).answer(request));
  };
  // It is what the tests are about.
  const explain = async () => (await (await respond()).json()) as Explained;
  return {
    clock,
    directory,
    respond,
    explain,
    register: (overrides: Partial<Registration> = {}) =>
      send(directory, makeRegistration(overrides)),
    reasons: async () => poolOf(await explain(), NAME)?.reasons,
  };
}

function overMemory() {
  const around = surroundings();
  const open = (livePools: LivePools) => new MemoryStore({ ...around.common, livePools });
  return asking(around, new RegisteredDirectory(open, [], around.clock));
}

function overTable(table = new FakeTable()) {
  const around = surroundings();
  const open = (livePools: LivePools) =>
    new DynamoStore({
      ...around.common,
      livePools,
      table,
      region: "us-west-2",
      heartbeatIntervalSecs: 5,
      pollIntervalSecs: 2,
      replicationGraceSecs: 30,
      skewSecs: 2,
    });
  const directory = new RegisteredDirectory(open, [], around.clock);
  /** Another replica registers the pool. */
  const put = (name: string, { writtenIn = "us-west-2", aheadMs = 0 } = {}) => {
    const registration = makeRegistration({ key: makeKey(name) });
    const renewal = { renewedAtMs: around.clock.wallMs() + aheadMs, leaseSecs: 15, writtenIn };
    table.put(sortKey(registration.key), encode(JSON.stringify(registration), renewal));
  };
  return { ...asking(around, directory), table, put };
}

function overSlices({ rule = mcs, store = {} as Partial<RegistrationStore> } = {}) {
  const around = surroundings();
  const { clock, log, common } = around;
  const sinks: SliceSink[] = [];
  const source = {
    isSynced: false,
    watch: unwatched,
    unready: "the slices have not been read yet" as string | undefined,
    outdated: undefined as string | undefined,
    start() {},
    stop() {},
    unreadyReason: () => source.unready,
    outdatedReason: () => source.unready ?? source.outdated,
  };
  const directory = new ImportedDirectory({
    openStore: (livePools) => Object.assign(new MemoryStore({ ...common, livePools }), store),
    openSlices: (sink) => {
      sinks.push(sink);
      return source;
    },
    rule,
    routers: { namespace: "dynamo", service: "global-router", port: undefined },
    clock,
    log,
  });
  const [sink] = sinks;
  if (sink === undefined) throw new Error("no sink");
  return {
    ...asking(around, directory),
    sink,
    source,
    sync(...slices: Parameters<SliceSink["replace"]>[0]) {
      sink.replace(slices);
      source.isSynced = true;
      source.unready = undefined;
    },
  };
}

const relays = (...at: string[]) =>
  mcsSlice("aws-west", `${NAME}-pool-relay`, { endpoints: endpointsAt(...at) });
const frontends = (at: readonly string[], ports = [{ name: "http", port: 8000 }]) =>
  mcsSlice("aws-west", `${NAME}-frontend`, { endpoints: endpointsAt(...at), ports });

describe("an explanation", () => {
  test("has the fields of the reference, in its order", async () => {
    const { register, respond, clock } = overMemory();
    clock.advance(1500);
    await register();
    clock.advance(4097);
    const response = await respond();
    expect(await response.text()).toBe(
      '{"service":{"version":"1.2.3","mode":"registrations","store":"memory",' +
        `"started_at":"2026-01-01T00:00:00.000Z","uptime_s":5.597,"complete":false,` +
        `"reasons":["${FRESH}"]},` +
        '"pools":[{"key":{"cluster_id":"aws-west","namespace":"dynamo",' +
        '"dgd_name":"mocker-west-1"},"listed":true,"reasons":[],' +
        '"last_registered_s_ago":4.097,"lease_left_s":10.903,"written_in":null,' +
        '"relays_ready":null,"frontends_ready":null,' +
        '"disagreements":{"count":0,"fields":[]}}],"slices":null,"table":null}',
    );
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    clock.advance(15_000);
    await register();
    expect((await overMemory().explain()).pools).toEqual([]);
  });

  test("says that the list is complete where it is", async () => {
    const { explain, clock } = overMemory();
    clock.advance(15_001);
    expect((await explain()).service).toMatchObject({ complete: true, reasons: [] });
  });

  test("lists pools by cluster, namespace and name, as GET /pools does", async () => {
    const { register, explain, directory } = overMemory();
    const keys = [
      makeKey("b"),
      makeKey("a/b"),
      makeKey("a"),
      makeKey("z", { cluster_id: "%2F" }),
      makeKey("z", { cluster_id: "a" }),
      makeKey("z", { cluster_id: "a-b" }),
      makeKey("z", { cluster_id: "a/b" }),
      makeKey("z", { namespace: "a" }),
    ];
    for (const key of keys) await register({ key });
    const { pools } = JSON.parse(new TextDecoder().decode(directory.pools().bytes));
    expect((await explain()).pools.map(({ key }) => key)).toEqual(
      pools.map(({ key }: ExplainedPool) => key),
    );
    expect(pools).toHaveLength(keys.length);
  });

  test("comes in the coding that is asked for, where it is large", async () => {
    const { register, respond } = overMemory();
    const plain = await respond({ "Accept-Encoding": "zstd, gzip" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(plain.headers.get("vary")).toBe("Accept-Encoding");
    for (let n = 0; n < 10; n += 1) await register({ key: makeKey(`pool-${n}`) });
    const text = await (await respond()).text();
    const zstd = await respond({ "Accept-Encoding": "zstd" });
    expect(zstd.headers.get("content-encoding")).toBe("zstd");
    expect(Bun.zstdDecompressSync(new Uint8Array(await zstd.arrayBuffer())).toString()).toBe(text);
    const gzip = await respond({ "Accept-Encoding": "gzip" });
    expect(gzip.headers.get("content-encoding")).toBe("gzip");
    const unzipped = Bun.gunzipSync(new Uint8Array(await gzip.arrayBuffer()));
    expect(new TextDecoder().decode(unzipped)).toBe(text);
  });
});

describe("with the memory store", () => {
  test("a pool whose lease ended stays for ten minutes, with the reason", async () => {
    const { register, explain, reasons, clock } = overMemory();
    await register();
    clock.advance(27_500);
    expect(poolOf(await explain(), NAME)).toMatchObject({
      listed: false,
      reasons: ["lease ended 12 s ago"],
      last_registered_s_ago: 27.5,
      lease_left_s: 0,
    });
    clock.advance(587_000);
    expect(await reasons()).toEqual(["lease ended 599 s ago"]);
    clock.advance(1000);
    expect(await reasons()).toBeUndefined();
  });

  test("a pool that returns is told of as a live one again", async () => {
    const { register, explain, clock, directory } = overMemory();
    await register();
    clock.advance(20_000);
    await register();
    const { pools } = await explain();
    expect(pools).toHaveLength(1);
    expect([...directory.knownPools()]).toHaveLength(1);
    expect(pools[0]).toMatchObject({ listed: true, reasons: [], last_registered_s_ago: 0 });
  });

  test("a pool leaves at the moment its lease ends, not at the next beat", async () => {
    const { register, explain, clock } = overMemory();
    await register();
    clock.advance(15_000);
    expect(poolOf(await explain(), NAME)).toMatchObject({ listed: true, lease_left_s: 0 });
    clock.pause(1);
    expect(poolOf(await explain(), NAME)?.reasons).toEqual(["lease ended 0 s ago"]);
  });

  test("relays that disagree are odd for a minute, and counted for good", async () => {
    const { register, explain, clock } = overMemory();
    await register();
    await register({ model: "other" });
    await register({ model: "other", capabilities: [] });
    clock.advance(3500);
    expect(poolOf(await explain(), NAME)).toMatchObject({
      listed: true,
      reasons: ["registered differently 3 s ago, in model, capabilities"],
      disagreements: { count: 2, fields: ["model", "capabilities"] },
    });
    for (let beats = 0; beats < 12; beats += 1) {
      clock.advance(5000);
      await register({ model: "other", capabilities: [] });
    }
    expect(poolOf(await explain(), NAME)).toMatchObject({
      reasons: [],
      disagreements: { count: 2, fields: ["model", "capabilities"] },
    });
    clock.advance(20_000);
    expect(poolOf(await explain(), NAME)?.disagreements.count).toBe(2);
  });

  test("of the pools that left, the last 1,000 are told of", async () => {
    const { register, explain, clock } = overMemory();
    for (let n = 0; n < 1200; n += 1) {
      await register({ key: makeKey(`pool-${n}`) });
      clock.advance(1);
    }
    clock.advance(20_000);
    const explaining = explain();
    await clock.run(0);
    const { pools } = await explaining;
    expect(pools).toHaveLength(1000);
    expect(pools.some(({ key }) => key.dgd_name === "pool-199")).toBe(false);
    expect(pools.some(({ key }) => key.dgd_name === "pool-1199")).toBe(true);
  });

  test("a pause is a reason why the list may lack a pool", async () => {
    const { explain, clock } = overMemory();
    clock.advance(20_000);
    clock.pause(5000);
    expect((await explain()).service.reasons).toEqual([
      "less than one lease of 15 s has passed since the process was stopped or starved",
    ]);
  });
});

describe("with the DynamoDB store", () => {
  test("before the first read nothing is listed, and it is said why", async () => {
    const { table, directory, explain, register, clock } = overTable();
    table.beforePage = () => {
      throw new TableError("error", "cannot reach DynamoDB");
    };
    expect(await explain()).toMatchObject({
      service: { complete: false, reasons: [FRESH, "the table has not been read yet"] },
      pools: [],
      table: {
        last_read_s_ago: null,
        last_read_took_ms: null,
        items: null,
        pages: null,
        last_error: null,
      },
    });
    await register();
    const opening = directory.open();
    await clock.run(500);
    const reason = "the table has not been read yet: cannot reach DynamoDB";
    expect(await explain()).toMatchObject({
      service: { reasons: [FRESH, reason] },
      pools: [{ listed: false, reasons: [reason], last_registered_s_ago: 0.5 }],
      table: { last_read_s_ago: null, last_error: "cannot reach DynamoDB" },
    });
    table.beforePage = () => {};
    await clock.run(1000);
    await opening;
    expect(await explain()).toMatchObject({
      pools: [{ listed: true, reasons: [] }],
      table: { last_error: null },
    });
    directory.close();
  });

  test("the last read of the table is told of", async () => {
    const { table, directory, explain, put, clock } = overTable();
    for (let n = 0; n < 5; n += 1) put(`pool-${n}`);
    table.pageSize = 2;
    table.beforePage = () => new Promise((resolve) => clock.after(100, resolve));
    const opening = directory.open();
    await clock.run(1000);
    await opening;
    expect((await explain()).table).toEqual({
      last_read_s_ago: 1,
      last_read_took_ms: 300,
      items: 5,
      pages: 3,
      last_error: null,
    });
    expect((await explain()).pools[0]).toMatchObject({
      listed: true,
      written_in: "us-west-2",
      last_registered_s_ago: 1,
      lease_left_s: 14,
    });
    directory.close();
  });

  test("while the table can't be read, the last lists are told of, and the fault", async () => {
    const { table, directory, explain, put, clock } = overTable();
    put(NAME);
    await directory.open();
    await clock.run(20_000);
    put(NAME);
    await clock.run(2500);
    table.beforePage = () => {
      throw new TableError("throttled", "DynamoDB throttles");
    };
    const readAtMs = clock.monotonicMs();
    await clock.run(8000);
    const { service, table: told } = await explain();
    expect(service.complete).toBe(false);
    const [reason = "", ...more] = service.reasons;
    expect(more).toEqual([]);
    const [, secs] =
      /^the last successful read of the table began (\d+) s ago: DynamoDB throttles$/.exec(
        reason,
      ) ?? [];
    expect(told?.last_error).toBe("DynamoDB throttles");
    expect(Math.floor(told?.last_read_s_ago ?? 0)).toBe(Number(secs));
    expect(Number(secs) * 1000).toBeWithin(clock.monotonicMs() - readAtMs, 12_000);
    directory.close();
  });

  test("a pool of another region that lives on by the grace is odd, and the list incomplete", async () => {
    const { directory, explain, put, clock } = overTable();
    put(NAME, { writtenIn: "eu-central-1" });
    put("own");
    await directory.open();
    await clock.run(16_500);
    expect(await explain()).toMatchObject({
      service: { complete: true },
      pools: [
        {
          key: { dgd_name: NAME },
          listed: true,
          reasons: ["lease ended 1 s ago; listed within the skew that clocks may have"],
          written_in: "eu-central-1",
          lease_left_s: 0,
        },
        { key: { dgd_name: "own" }, listed: true },
      ],
    });
    await clock.run(10_500);
    expect(await explain()).toMatchObject({
      service: { complete: false, reasons: ["pools are listed by the replication grace: 1"] },
      pools: [
        {
          listed: true,
          reasons: [
            "lease ended 12 s ago; listed by the replication grace, since region eu-central-1 wrote it",
          ],
        },
        { key: { dgd_name: "own" }, listed: false, reasons: ["lease ended 12 s ago"] },
      ],
    });
    await clock.run(30_000);
    expect(poolOf(await explain(), NAME)?.reasons).toEqual(["lease ended 42 s ago"]);
    directory.close();
  });

  test("a pool whose item somebody takes away has left for that reason", async () => {
    const { directory, explain, put, clock, table } = overTable();
    put(NAME);
    await directory.open();
    table.items.clear();
    await clock.run(2500);
    const { pools } = await explain();
    expect(pools).toHaveLength(1);
    expect(pools[0]).toMatchObject({
      listed: false,
      last_registered_s_ago: 2.5,
      lease_left_s: 0,
      written_in: "us-west-2",
    });
    expect(pools[0]?.reasons).toEqual(["its item was taken out of the table 0 s ago"]);
    put(NAME);
    await clock.run(2500);
    expect((await explain()).pools).toMatchObject([{ listed: true, reasons: [] }]);
    directory.close();
  });

  test("an item that can't be decoded is told of by its key, until it has lapsed", async () => {
    const { directory, explain, put, clock, table } = overTable();
    put("a%2Fb");
    const id = sortKey(makeKey("a%2Fb"));
    table.put(id, { ...table.items.get(id), registration: { S: "{}" } });
    table.put("not a key", { registration: { S: "{}" } });
    await directory.open();
    await clock.run(15_500);
    expect(await explain()).toMatchObject({
      service: {
        complete: false,
        reasons: ["items of the table that may be of live pools can't be decoded: 2"],
      },
      pools: [
        {
          key: makeKey("a%2Fb"),
          listed: false,
          reasons: ["its item in the table can't be decoded"],
          last_registered_s_ago: null,
          lease_left_s: null,
          written_in: null,
          disagreements: { count: 0, fields: [] },
        },
      ],
    });
    await clock.run(2000);
    expect((await explain()).pools).toEqual([]);
    directory.close();
  });

  test("a renewal in the future is odd", async () => {
    const { directory, explain, put, clock } = overTable();
    put(NAME, { aheadMs: 12_500 });
    await directory.open();
    expect(poolOf(await explain(), NAME)).toMatchObject({
      listed: true,
      last_registered_s_ago: 0,
      reasons: ["registered 12 s in the future: clocks differ by more than the skew"],
    });
    await clock.run(10_500);
    expect(poolOf(await explain(), NAME)?.reasons).toEqual([]);
    directory.close();
  });
});

describe("with imported slices", () => {
  test("before they are read nothing is listed, and nothing is said of relays", async () => {
    const { register, explain, sync } = overSlices();
    await register();
    const reason = "the slices have not been read yet";
    expect(await explain()).toMatchObject({
      service: { complete: false, reasons: [FRESH, reason] },
      pools: [{ listed: false, reasons: [reason], relays_ready: null, frontends_ready: null }],
    });
    sync(relays("10.0.0.1"), frontends(["10.1.0.1"]));
    expect(await explain()).toMatchObject({
      service: { reasons: [FRESH] },
      pools: [{ listed: true, reasons: [], relays_ready: 1, frontends_ready: 1 }],
    });
  });

  test("before the table is read, it is not said that nobody has registered", async () => {
    const unread = "the table has not been read yet";
    const { explain, sync } = overSlices({
      store: {
        unreadyReason: () => unread,
        incompleteReasons: () => [unread],
      },
    });
    sync(relays("10.0.0.1"));
    expect(await explain()).toMatchObject({
      service: { reasons: [unread] },
      pools: [{ listed: false, reasons: [unread], relays_ready: 1 }],
    });
  });

  test("while they are not watched, it is said", async () => {
    const { explain, source, sync, clock } = overSlices();
    sync();
    clock.advance(15_001);
    source.outdated = "the slices have not been watched for 31 s: connection refused";
    expect((await explain()).service).toMatchObject({
      complete: false,
      reasons: ["the slices have not been watched for 31 s: connection refused"],
    });
  });

  test("a pool without Ready relays, imported or not, is not listed", async () => {
    const { register, explain, sync, sink } = overSlices();
    sync();
    await register();
    const expected = { listed: false, reasons: [NO_RELAYS], relays_ready: 0, frontends_ready: 0 };
    expect((await explain()).pools).toMatchObject([expected]);
    sink.put(relays());
    sink.put(frontends(["10.1.0.1", "10.1.0.2"]));
    expect((await explain()).pools).toMatchObject([{ ...expected, frontends_ready: 2 }]);
    sink.put(relays("10.0.0.1", "10.0.0.2", "10.0.0.2"));
    expect((await explain()).pools).toMatchObject([
      { listed: true, reasons: [], relays_ready: 2, frontends_ready: 2 },
    ]);
  });

  test("imported relays that nobody has registered are told of", async () => {
    const { explain, sync } = overSlices();
    sync(relays("10.0.0.1"), frontends(["10.1.0.1"]), mcsSlice("aws-west", "alone-frontend"));
    expect((await explain()).pools).toEqual([
      {
        key: makeKey(NAME),
        listed: false,
        reasons: ["no registration from cluster aws-west"],
        last_registered_s_ago: null,
        lease_left_s: null,
        written_in: null,
        relays_ready: 1,
        frontends_ready: 1,
        disagreements: { count: 0, fields: [] },
      },
    ]);
  });

  test("imported relays whose registration ended are told of for as long as they are there", async () => {
    const { register, reasons, explain, sync, sink, clock } = overSlices();
    sync(relays("10.0.0.1"));
    await register();
    clock.advance(27_000);
    expect(await reasons()).toEqual(["lease ended 12 s ago"]);
    expect((await explain()).pools).toHaveLength(1);
    sink.put(relays());
    expect(await reasons()).toEqual(["lease ended 12 s ago", NO_RELAYS]);
    clock.advance(590_000);
    expect(await reasons()).toEqual(["no registration from cluster aws-west", NO_RELAYS]);
    sink.remove(relays());
    expect(await reasons()).toEqual(["no registration from cluster aws-west", NO_RELAYS]);
    clock.advance(600_001);
    expect((await explain()).pools).toEqual([]);
  });

  test("a pool that is registered again has not left, and comes once", async () => {
    const { register, explain, sync, clock, directory } = overSlices();
    sync(relays("10.0.0.1"));
    await register();
    clock.advance(20_000);
    await register();
    expect((await explain()).pools).toMatchObject([{ listed: true }]);
    expect([...directory.knownPools()]).toHaveLength(1);
  });

  test("relays that go although nobody had registered them stay for ten minutes", async () => {
    const { reasons, sync, sink, clock, directory } = overSlices();
    sync(relays("10.0.0.1"));
    sink.remove(relays());
    clock.advance(300_000);
    sink.put(relays("10.0.0.1"));
    expect([...directory.knownPools()]).toHaveLength(1);
    expect(await reasons()).toEqual(["no registration from cluster aws-west"]);
    sink.remove(relays());
    clock.advance(600_000);
    expect(await reasons()).toEqual(["no registration from cluster aws-west", NO_RELAYS]);
    clock.advance(1);
    expect(await reasons()).toBeUndefined();
  });

  test("a listed pool without frontends is odd, for one of three reasons", async () => {
    const { register, explain, reasons, sync, sink } = overSlices();
    sync(relays("10.0.0.1"));
    await register();
    expect((await explain()).pools).toMatchObject([
      {
        listed: true,
        reasons: ["its frontend Service is not imported, so it has no frontends"],
        relays_ready: 1,
        frontends_ready: 0,
      },
    ]);
    sink.put(frontends([]));
    expect(await reasons()).toEqual([
      "its frontend Service has no Ready endpoint, so it has no frontends",
    ]);
    const ports = [
      { name: "web", port: 80 },
      { name: "grpc", port: 81 },
    ];
    sink.put(frontends(["10.1.0.1"], ports));
    expect(await reasons()).toEqual([
      "no port of its frontend Service is named http or the only one, so it has no frontends",
    ]);
    sink.put(frontends(["10.1.0.1"]));
    expect(await reasons()).toEqual([]);
  });

  test("slices are counted, and up to ten of those that are left out are named", async () => {
    const { explain, sync } = overSlices({ rule: karmada });
    const unknown = Array.from({ length: 12 }, (_, n) =>
      karmadaSlice("nobody", "x-pool-relay", { original: `by-hand-${n}` }),
    );
    sync(
      karmadaSlice("aws-west", `${NAME}-pool-relay`),
      karmadaSlice("aws-west", "unrelated"),
      ...unknown,
    );
    const none = { count: 0, names: [] };
    expect((await explain()).slices).toEqual({
      used: 1,
      left_out: {
        "not-imported": none,
        "other-namespace": none,
        "unknown-cluster": {
          count: 12,
          names: unknown.slice(0, 10).map(({ metadata }) => `dynamo/${metadata.name}`),
        },
        fqdn: none,
        "other-service": { count: 1, names: ["dynamo/imported-aws-west-unrelated-x7k2m"] },
      },
    });
  });
});

describe("the cost", () => {
  /** A directory that knows so many pools, of which `factsOf` tells. */
  function knowing(count: number, factsOf: (id: string) => PoolFacts | undefined): Directory {
    const { directory } = overMemory();
    return Object.assign(Object.create(directory), {
      facts: () => directory.facts(),
      *knownPools() {
        for (let n = 0; n < count; n += 1) yield `c/n/${(n * 7919) % count}`;
      },
      poolFacts: factsOf,
    });
  }

  function factsOf(id: string, reasons: readonly string[] = []): PoolFacts {
    return {
      key: keyOf(id) ?? makeKey(""),
      listed: true,
      reasons,
      registeredMsAgo: 0,
      leaseLeftMs: 0,
      writtenIn: null,
      relaysReady: null,
      frontendsReady: null,
      disagreements: { count: 0, fields: [] },
    };
  }

  test("others have their turn after each few hundred pools", async () => {
    let [sinceTurn, most] = [0, 0];
    const directory = knowing(10_000, (id) => {
      sinceTurn += 1;
      most = Math.max(most, sinceTurn);
      return factsOf(id);
    });
    const around = surroundings();
    const { clock, respond } = asking(around, directory);
    const after = clock.after.bind(clock);
    let turns = 0;
    clock.after = (ms, callback) => {
      turns += 1;
      return after(ms, () => {
        sinceTurn = 0;
        callback();
      });
    };
    const responding = respond();
    await clock.run(0);
    const { pools } = JSON.parse(await (await responding).text());
    expect(pools).toHaveLength(10_000);
    expect(most).toBe(400);
    expect(turns).toBeGreaterThan(25);
  });

  test("a pool that goes meanwhile is left out", async () => {
    const directory = knowing(1000, (id) => (id.endsWith("7") ? undefined : factsOf(id)));
    const { clock, explain } = asking(surroundings(), directory);
    const explaining = explain();
    await clock.run(0);
    expect((await explaining).pools).toHaveLength(900);
  });

  test("of more than 200,000 pools, the rest are left out, and counted", async () => {
    const { clock, respond } = asking(
      surroundings(),
      knowing(200_010, () => undefined),
    );
    const responding = respond();
    await clock.run(0);
    expect(await (await responding).json()).toMatchObject({ pools: [], pools_left_out: 10 });
  });

  test("what does not fit into 64 MiB is left out, and counted", async () => {
    const long = "x".repeat(200 * 1024);
    const { clock, respond } = asking(
      surroundings(),
      knowing(900, (id) => factsOf(id, [long])),
    );
    const responding = respond();
    await clock.run(0);
    const text = await (await responding).text();
    expect(text.length).toBeWithin(64 * 1024 * 1024, 90 * 1024 * 1024);
    const { pools, pools_left_out: leftOut, ...rest } = JSON.parse(text);
    expect(pools.length + leftOut).toBe(900);
    expect(pools.length * long.length).toBeGreaterThan(63 * 1024 * 1024);
    expect(Object.keys(rest)).toEqual(["service", "slices", "table"]);
  });
});
