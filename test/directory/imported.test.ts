import { describe, expect, test } from "bun:test";
import { ImportedDirectory } from "../../src/directory/imported.ts";
import type { RouterPort } from "../../src/directory/routers.ts";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { OwnershipRule } from "../../src/kubernetes/ownership.ts";
import type { SliceSink } from "../../src/kubernetes/reflector.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import type { RegistrationStore } from "../../src/registrations/store.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { unwatched } from "../support/facts.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeKey, makeRegistration, send } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { endpointsAt, karmadaSlice, mcsSlice, podAt } from "../support/slices.ts";

interface SetUp {
  readonly rule?: OwnershipRule;
  readonly port?: RouterPort;
  readonly routerService?: string;
  /** In place of a memory store. */
  readonly store?: Partial<RegistrationStore>;
}

function setUp(options: SetUp = {}) {
  const { rule = mcs, port, routerService = "global-router", store = {} } = options;
  const clock = new FakeClock();
  const runClock = new RunClock(clock, () => {});
  const { log, lines } = recordedLog();
  const source = {
    started: 0,
    stopped: 0,
    reason: "the slices have not been listed yet" as string | undefined,
    outdated: undefined as string | undefined,
    isSynced: true,
    watch: unwatched,
    start: () => {
      source.started += 1;
    },
    stop: () => {
      source.stopped += 1;
    },
    unreadyReason: () => source.reason,
    outdatedReason: () => source.outdated,
  };
  const sinks: SliceSink[] = [];
  const directory = new ImportedDirectory({
    openStore: (livePools) => {
      const memory = new MemoryStore({
        leaseSecs: 15,
        livePools,
        clock,
        runClock,
        log: recordedLog().log,
      });
      return Object.assign(memory, store);
    },
    openSlices: (sink) => {
      sinks.push(sink);
      return source;
    },
    rule,
    routers: { namespace: "dynamo", service: routerService, port },
    clock,
    log,
  });
  const [sink] = sinks;
  if (sink === undefined) throw new Error("no sink");
  runClock.start(() => directory.expire());
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return {
    clock,
    directory,
    source,
    sink,
    lines,
    /** The slices are listed, and a lease has passed. */
    sync(...slices: Parameters<SliceSink["replace"]>[0]) {
      sink.replace(slices);
      source.reason = undefined;
      clock.advance(15_001);
      return this;
    },
    pools: () => text(directory.pools().bytes),
    names: (): string[] =>
      JSON.parse(text(directory.pools().bytes)).pools.map(
        ({ key }: { key: { cluster_id: string; dgd_name: string } }) =>
          `${key.cluster_id}/${key.dgd_name}`,
      ),
    pool: (at = 0) => JSON.parse(text(directory.pools().bytes)).pools[at],
    routers: () => text(directory.routers().bytes),
  };
}

const relays = (...at: string[]) =>
  mcsSlice("aws-west", "mocker-west-1-pool-relay", { endpoints: endpointsAt(...at) });
const frontends = (...at: string[]) =>
  mcsSlice("aws-west", "mocker-west-1-frontend", {
    endpoints: endpointsAt(...at),
    ports: [{ name: "http", port: 8000 }],
  });

describe("a pool is listed", () => {
  test("with the fields and their order of the reference, its frontends being the imported ones", async () => {
    const { directory, sync, pools } = setUp();
    sync(relays("10.0.0.2", "10.0.0.1"), frontends("10.1.0.2", "10.1.0.1"));
    await send(directory, makeRegistration());
    expect(pools()).toBe(
      '{"pools":[{"key":{"cluster_id":"aws-west","namespace":"dynamo","dgd_name":"mocker-west-1"},' +
        '"location":{"region":"us-west-2","availability_zone":null,"datacenter":null},' +
        '"model":"Qwen/Qwen3-0.6B","capabilities":["aggregated"],' +
        '"frontends":["http://10.1.0.1:8000/","http://10.1.0.2:8000/"],' +
        '"capacity":[{"sku":"H100","workers":8}],' +
        '"relay_identities":["ip:10.0.0.1","ip:10.0.0.2"]}],"complete":true}',
    );
  });

  test("while its registration is live and a Ready relay is imported, whichever comes first", async () => {
    const { directory, sync, sink, names, clock } = setUp();
    sync();
    await send(directory, makeRegistration());
    expect(names()).toEqual([]);
    sink.put(relays("10.0.0.1"));
    expect(names()).toEqual(["aws-west/mocker-west-1"]);
    sink.put(relays());
    expect(names()).toEqual([]);
    sink.put(relays("10.0.0.1"));
    sink.remove(relays());
    expect(names()).toEqual([]);
    sink.put(relays("10.0.0.1"));
    clock.advance(15_001);
    expect(names()).toEqual([]);
    await send(directory, makeRegistration());
    expect(names()).toEqual(["aws-west/mocker-west-1"]);
    // It leaves at that moment, not at the next beat.
    clock.advance(15_000);
    expect(names()).toEqual(["aws-west/mocker-west-1"]);
    clock.pause(1);
    expect(names()).toEqual([]);
  });

  test("for its own cluster, namespace and name only", async () => {
    const { directory, sync, names } = setUp();
    sync(
      relays("10.0.0.1"),
      mcsSlice("aws-west", "other-pool-relay", {
        namespace: "prod",
        endpoints: endpointsAt("10.0.0.2"),
      }),
      mcsSlice("aws-west", "wrong-frontend", { endpoints: endpointsAt("10.0.0.3") }),
    );
    for (const key of [
      makeKey("mocker-west-1"),
      makeKey("mocker-west-1", { cluster_id: "aws-east" }),
      makeKey("mocker-west-1", { namespace: "prod" }),
      makeKey("other"),
      makeKey("wrong"),
      makeKey("mocker-west-1-pool-relay"),
    ]) {
      await send(directory, makeRegistration({ key }));
    }
    expect(names()).toEqual(["aws-west/mocker-west-1"]);
  });

  test("with IPv6 relays in their canonical form, without brackets, sorted, without repeats", async () => {
    const { directory, sync, pool } = setUp();
    const of = (name: string, ...at: string[]) =>
      mcsSlice("aws-west", "mocker-west-1-pool-relay", { name, endpoints: endpointsAt(...at) });
    sync(of("one", "2001:DB8:0::A", "10.0.0.9"), of("two", "10.0.0.9", "10.0.0.10", "2001:db8::a"));
    await send(directory, makeRegistration());
    expect(pool().relay_identities).toEqual(["ip:10.0.0.10", "ip:10.0.0.9", "ip:2001:db8::a"]);
  });

  test("with frontends at the port of their own slice, sorted, without repeats", async () => {
    const { directory, sync, pool } = setUp();
    const of = (name: string, ports: object[], ...at: string[]) =>
      mcsSlice("aws-west", "mocker-west-1-frontend", {
        name,
        ports,
        endpoints: endpointsAt(...at),
      });
    sync(
      relays("10.0.0.1"),
      of(
        "one",
        [
          { name: "http", port: 80 },
          { name: "metrics", port: 9 },
        ],
        "10.1.0.2",
        "10.1.0.1",
      ),
      of("two", [{ name: "web", port: 8000 }, { name: "none" }], "10.1.0.1", "10.1.0.1"),
      of("tls", [{ name: "https", port: 443 }], "2001:DB8::1"),
      of(
        "unclear",
        [
          { name: "a", port: 1 },
          { name: "b", port: 2 },
        ],
        "10.1.0.9",
      ),
      of("none", [], "10.1.0.9"),
    );
    await send(directory, makeRegistration());
    expect(pool().frontends).toEqual([
      "http://10.1.0.1/",
      "http://10.1.0.1:8000/",
      "http://10.1.0.2/",
      "https://[2001:db8::1]/",
    ]);
  });

  test("without frontends where none is imported, never with those of its registration", async () => {
    const { directory, sync, sink, pool } = setUp();
    sync(relays("10.0.0.1"));
    await send(directory, makeRegistration());
    expect(pool().frontends).toEqual([]);
    sink.put(frontends("10.1.0.1"));
    expect(pool().frontends).toEqual(["http://10.1.0.1:8000/"]);
    sink.remove(frontends());
    expect(pool().frontends).toEqual([]);
  });

  test("with what its last registration says of the rest", async () => {
    const { directory, sync, pool } = setUp();
    sync(relays("10.0.0.1"));
    await send(directory, makeRegistration());
    await send(directory, makeRegistration({ model: "other" }));
    expect(pool()).toMatchObject({ model: "other", relay_identities: ["ip:10.0.0.1"] });
  });

  test("with its frontends, though the routers' Service be the very same", async () => {
    const { directory, pool, routers, sink, sync } = setUp({
      routerService: "mocker-west-1-frontend",
    });
    sync(relays("10.0.0.1"));
    await send(directory, makeRegistration());
    sink.put(frontends("10.1.0.1"));
    expect(pool().frontends).toEqual(["http://10.1.0.1:8000/"]);
    const listed = '{"routers":[{"replica":"aws-west/10.1.0.1","url":"http://10.1.0.1:8000/"}]}';
    expect(routers()).toBe(listed);
    sink.put({
      ...frontends("10.1.0.2"),
      metadata: { ...frontends().metadata, namespace: "other" },
    });
    expect(routers()).toBe(listed);
  });
});

describe("karmada", () => {
  test("a hand-made slice follows the clusters of live registrations", async () => {
    const { directory, sync, names, clock } = setUp({ rule: karmada });
    sync(
      karmadaSlice("", "x-pool-relay", {
        name: "imported-a-b-manual",
        endpoints: endpointsAt("10.0.0.1"),
      }),
    );
    const of = (cluster: string, dgd: string) =>
      makeRegistration({ key: makeKey(dgd, { cluster_id: cluster }) });
    await send(directory, of("a", "x"));
    expect(names()).toEqual(["a/x"]);
    // Any pool of a cluster makes it known.
    clock.advance(5000);
    await send(directory, of("a-b", "y"));
    expect(names()).toEqual([]);
    await send(directory, of("a-b", "x"));
    await send(directory, of("a", "x"));
    expect(names()).toEqual(["a-b/x"]);
    clock.advance(10_000);
    await send(directory, of("a", "x"));
    clock.advance(5001);
    expect(names()).toEqual(["a/x"]);
  });

  test("a router in a hand-made slice leaves with its cluster's last lease, not at the next beat", async () => {
    const { directory, sync, routers, clock } = setUp({ rule: karmada });
    sync(
      karmadaSlice("", "global-router", {
        name: "imported-a-manual",
        endpoints: [podAt("r-0", "10.0.0.1")],
        ports: [{ port: 80 }],
      }),
    );
    await send(directory, makeRegistration({ key: makeKey("x", { cluster_id: "a" }) }));
    clock.advance(15_000);
    expect(routers()).toContain('"replica":"a/r-0"');
    clock.pause(1);
    expect(routers()).toBe('{"routers":[]}');
  });
});

describe("the same outcome", () => {
  test("keeps the very same bytes and ETag", async () => {
    const { directory, sync, sink } = setUp();
    sync(relays("10.0.0.1", "10.0.0.2"), frontends("10.1.0.1"));
    await send(directory, makeRegistration());
    const pools = directory.pools();
    const routers = directory.routers();
    sink.put(relays("10.0.0.2", "10.0.0.1"));
    sink.replace([frontends("10.1.0.1"), relays("10.0.0.2", "10.0.0.1", "10.0.0.1")]);
    sink.put(
      mcsSlice("aws-east", "mocker-west-1-pool-relay", { endpoints: endpointsAt("10.0.0.3") }),
    );
    sink.put(mcsSlice("aws-east", "global-router", { endpoints: [] }));
    await send(directory, makeRegistration({ frontends: ["http://elsewhere/"] }));
    expect(directory.pools()).toBe(pools);
    expect(directory.routers()).toBe(routers);
    sink.put(relays("10.0.0.2"));
    expect(directory.pools().etags.identity).not.toBe(pools.etags.identity);
    sink.put(relays("10.0.0.1", "10.0.0.2"));
    expect(directory.pools().etags.identity).toBe(pools.etags.identity);
  });
});

describe("routers", () => {
  test("come from the router Service of every cluster, at --router-port", () => {
    const { sync, sink, routers } = setUp({ port: "grpc" });
    const ports = [
      { name: "http", port: 8080 },
      { name: "grpc", port: 9090 },
    ];
    const of = (cluster: string, pod: string) =>
      mcsSlice(cluster, "global-router", { ports, endpoints: [podAt(pod, "10.2.0.1")] });
    sync(of("aws", "r-0"), of("gcp", "r-0"));
    sink.put(
      mcsSlice("aws", "global-router", {
        namespace: "other",
        ports,
        endpoints: endpointsAt("10.2.0.9"),
      }),
    );
    sink.put(mcsSlice("aws", "x-frontend", { ports, endpoints: endpointsAt("10.2.0.9") }));
    expect(routers()).toBe(
      '{"routers":[{"replica":"aws/r-0","url":"http://10.2.0.1:9090/"},' +
        '{"replica":"gcp/r-0","url":"http://10.2.0.1:9090/"}]}',
    );
    sink.remove(of("aws", "r-0"));
    expect(routers()).toBe('{"routers":[{"replica":"gcp/r-0","url":"http://10.2.0.1:9090/"}]}');
  });
});

describe("readiness", () => {
  const unavailable = (reason: string) => new ServiceError("unavailable", reason);

  test("before the first sync of the slices both lists are unavailable", async () => {
    const { directory, sync } = setUp();
    await send(directory, makeRegistration());
    const reason = unavailable("the slices have not been listed yet");
    expect(() => directory.pools()).toThrow(reason);
    expect(() => directory.routers()).toThrow(reason);
    expect(directory.isReady()).toBe(false);
    sync();
    expect(directory.isReady()).toBe(true);
    expect(directory.routers().bytes.length).toBeGreaterThan(0);
  });

  test("before the first read of the store pools are unavailable, and routers are not", () => {
    const store = { unreadyReason: () => "the table has not been read yet" };
    const { directory, sync, routers } = setUp({ store });
    sync();
    expect(() => directory.pools()).toThrow(unavailable("the table has not been read yet"));
    expect(directory.isReady()).toBe(false);
    expect(routers()).toBe('{"routers":[]}');
  });

  test("open starts the slices, and waits for them and for the store, whichever is last", async () => {
    for (const last of ["store", "slices"]) {
      const read = Promise.withResolvers<void>();
      const { directory, source, sink } = setUp({ store: { open: () => read.promise } });
      const ends = { store: () => read.resolve(), slices: () => sink.replace([]) };
      let opened = false;
      const opening = directory.open().then(() => {
        opened = true;
      });
      expect(source.started).toBe(1);
      if (last === "store") ends.slices();
      else ends.store();
      await Bun.sleep(0);
      expect(opened).toBe(false);
      if (last === "store") ends.store();
      else ends.slices();
      await opening;
      directory.close();
      expect(source.stopped).toBe(1);
    }
  });

  test("open fails with the store", async () => {
    const fault = new ServiceError("startup", "no such table");
    const { directory } = setUp({ store: { open: () => Promise.reject(fault) } });
    const error = await directory.open().catch((thrown: unknown) => thrown);
    expect(error).toBe(fault);
  });

  test("the list is complete when the store and the slices both are", () => {
    const { pools, source, clock, sink } = setUp();
    sink.replace([]);
    source.reason = undefined;
    expect(pools()).toContain('"complete":false');
    clock.advance(15_001);
    expect(pools()).toContain('"complete":true');
    source.outdated = "the slices have not been watched for 31 s";
    expect(pools()).toContain('"complete":false');
  });

  test("while the slices are cut off, the last lists serve", async () => {
    const { directory, sync, source, names, clock } = setUp();
    sync(relays("10.0.0.1"));
    await send(directory, makeRegistration());
    source.outdated = "the slices have not been watched for 31 s";
    clock.advance(10_000);
    expect(names()).toEqual(["aws-west/mocker-west-1"]);
  });
});

describe("the log", () => {
  test("tells when a pool is listed and when no longer, with the reason, and nothing in between", async () => {
    const { directory, sync, sink, lines, clock } = setUp();
    sync();
    const said = () =>
      lines.splice(0).map(({ level, message, fields }) => [level, message, fields]);
    const pool = "aws-west/dynamo/mocker-west-1";
    const reason =
      "no Ready endpoint of Service mocker-west-1-pool-relay is imported from cluster aws-west";
    await send(directory, makeRegistration());
    expect(said()).toEqual([["info", "pool not listed", { pool, reason }]]);
    await send(directory, makeRegistration({ model: "other" }));
    sink.put(relays());
    expect(said()).toEqual([]);
    sink.put(relays("10.0.0.1"));
    expect(said()).toEqual([["info", "pool listed", { pool }]]);
    sink.put(relays("10.0.0.2"));
    sink.put(frontends("10.1.0.1"));
    await send(directory, makeRegistration());
    expect(said()).toEqual([]);
    sink.remove(relays());
    expect(said()).toEqual([["info", "pool no longer listed", { pool, reason }]]);
    sink.remove(frontends());
    // Of a lease that ends the store tells.
    clock.advance(20_000);
    expect(said()).toEqual([]);
    sink.put(relays("10.0.0.1"));
    await send(directory, makeRegistration());
    expect(said()).toEqual([["info", "pool listed", { pool }]]);
  });

  test("is spared the pools that the first sync finds", async () => {
    const { directory, sync, lines } = setUp();
    await send(directory, makeRegistration());
    sync(relays("10.0.0.1"));
    expect(lines.map(({ level }) => level)).toEqual(["debug", "debug"]);
  });
});

test("whoever listens hears of each change of the slices and the registrations, and of no renewal", async () => {
  const { directory, sink, clock } = setUp().sync();
  let heard = 0;
  directory.onChange(() => {
    heard += 1;
  });
  const hears = async (action: () => unknown) => {
    const before = heard;
    await action();
    return heard > before;
  };
  const routers = mcsSlice("aws-west", "global-router", {
    endpoints: endpointsAt("10.9.0.1"),
    ports: [{ name: "", port: 9090 }],
  });
  expect(await hears(() => send(directory, makeRegistration()))).toBe(true);
  expect(await hears(() => sink.put(relays("10.1.0.1")))).toBe(true);
  expect(await hears(() => sink.put(frontends("10.2.0.1")))).toBe(true);
  expect(await hears(() => sink.put(routers))).toBe(true);
  expect(await hears(() => sink.remove(relays("10.1.0.1")))).toBe(true);
  expect(await hears(() => sink.replace([]))).toBe(true);
  expect(await hears(() => send(directory, makeRegistration()))).toBe(false);
  expect(await hears(() => clock.advance(16_000))).toBe(true);
});
