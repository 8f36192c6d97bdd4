import { expect, test } from "bun:test";
import type { Emulator } from "../../support/dynamodb.ts";
import { explained } from "../../support/explained.ts";
import {
  answerOf,
  frontendsOf,
  imported,
  MODES,
  relaysOf,
  Scene,
  type SceneOptions,
  SELECTORS,
  WEST,
} from "../../support/imports.ts";
import { keyNamed, poolNamed } from "../../support/pool-items.ts";
import { find, type WireKey } from "../../support/relay.ts";
import { endpointsAt, karmadaSlice, makeSlice, podAt } from "../../support/slices.ts";
import { until } from "../../support/until.ts";
import { etagOf, waitFor } from "../../support/waiter.ts";
import { lists, names, Relays, registerSoon, type Sample, Watch } from "../../support/watch.ts";

/** Checks that nothing but the mode's slices was ever asked for, in the ways that RBAC has to allow. */
export function expectOnlyReads({ fake, mode }: Scene): void {
  expect(fake.requests.length).toBeGreaterThan(1);
  for (const { verb, method, query, headers } of fake.requests) {
    expect(method).toBe("GET");
    expect(query.get("labelSelector")).toBe(SELECTORS[mode]);
    expect(headers.get("user-agent")).toMatch(/^global-discovery-service\/\d/);
    if (verb === "watch") {
      expect(query.get("allowWatchBookmarks")).toBe("true");
      expect(query.get("resourceVersion")).toMatch(/^\d+$/);
      expect(Number(query.get("timeoutSeconds"))).toBeWithin(240, 301);
    } else {
      expect(verb).toBe("list");
      expect(query.get("limit")).toBe("500");
    }
  }
}

const pool = (name: string) => (sample: Sample) => find(sample.list?.pools ?? [], keyNamed(name));

/** Waits until `GET /routers` says just this. */
async function untilRouters(scene: Scene, ...routers: readonly (readonly [string, string])[]) {
  const expected = { routers: routers.map(([replica, url]) => ({ replica, url })) };
  let last = "";
  await until("the routers", async () => {
    const [status, body] = await answerOf(scene.url, "/routers");
    last = body;
    return (status === 200 && Bun.deepEquals(JSON.parse(body), expected)) || undefined;
  }).catch((error) => {
    throw new Error(`${error.message} ${JSON.stringify(expected)}, not ${last}`);
  });
}

/** The join from the heartbeat to the list, against what `command` starts. */
export function joinTests(
  command: readonly string[],
  emulator: (() => Emulator) | undefined,
): void {
  const start = async (options: SceneOptions) =>
    Scene.start({
      command,
      table: emulator === undefined ? undefined : await emulator().createTable(),
      ...options,
    });

  for (const mode of MODES) {
    test.concurrent(`${mode}: a pool is listed while it is registered and a Ready relay is imported from its cluster`, async () => {
      const relays = relaysOf(mode, "a");
      await using scene = await start({ mode });
      scene.put(relays, frontendsOf(mode, "a"), relaysOf(mode, "not-registered"));
      await using watch = new Watch(scene.url, 100);
      await watch.for("a complete list of nothing", ({ list }) =>
        Boolean(list?.complete && list.pools.length === 0),
      );
      const elsewhere: WireKey = { ...keyNamed("a"), cluster_id: "gcp-east" };
      const other: WireKey = { ...keyNamed("a"), namespace: "other" };
      await using _others = new Relays(scene.url, [
        poolNamed("a", { key: elsewhere }),
        poolNamed("a", { key: other }),
        poolNamed("no-relays"),
      ]);
      const explain = async (key: WireKey) => find((await explained(scene.url)).pools, key);
      {
        await using _ = new Relays(scene.url, [poolNamed("a")]);
        const listed = await watch.for("the pool", ({ list }) => lists(list, "a"));
        expect(listed.list?.pools).toEqual([
          {
            ...poolNamed("a"),
            frontends: ["http://10.2.0.1:8000/"],
            relay_identities: ["ip:10.1.0.1"],
          },
        ]);
        expect(listed.body).toBe(
          '{"pools":[{"key":{"cluster_id":"aws-west","namespace":"dynamo","dgd_name":"a"},' +
            '"location":{"region":"us-west-2","availability_zone":"us-west-2a","datacenter":null},' +
            '"model":"Qwen/Qwen3-0.6B","capabilities":["aggregated"],' +
            '"frontends":["http://10.2.0.1:8000/"],"capacity":[{"sku":"H100","workers":8}],' +
            `"relay_identities":["ip:10.1.0.1"]}],"complete":${listed.list?.complete}}`,
        );
        const facts = await explained(scene.url);
        expect(facts.service).toMatchObject({ mode, complete: listed.list?.complete });
        expect(facts.service.store).toBe(emulator === undefined ? "memory" : "dynamodb");
        expect(facts.slices?.used).toBe(3);
        expect(facts.table === null).toBe(emulator === undefined);
        expect(find(facts.pools, keyNamed("a"))).toMatchObject({
          listed: true,
          reasons: [],
          written_in: emulator === undefined ? null : "us-east-1",
          relays_ready: 1,
          frontends_ready: 1,
        });
        const there = await until("a registration from elsewhere", () => explain(elsewhere));
        expect(there.reasons).toEqual([
          "no Ready endpoint of Service a-pool-relay is imported from cluster gcp-east",
        ]);
        expect(await explain(keyNamed("not-registered"))).toMatchObject({
          listed: false,
          reasons: ["no registration from cluster aws-west"],
          last_registered_s_ago: null,
          relays_ready: 1,
          frontends_ready: 0,
        });
        const gone = (sample: Sample) => sample.list?.pools.length === 0;
        const back = (sample: Sample) => Bun.deepEquals(names(sample.list), ["a"]);

        const notReady = { addresses: ["10.1.0.1"], conditions: { ready: false, serving: true } };
        scene.put(relaysOf(mode, "a", { endpoints: [notReady] }));
        await watch.for("an endpoint that is not ready", gone);
        scene.put(relays);
        await watch.for("an endpoint that is ready again", back);

        scene.delete(relays);
        await watch.for("a slice that is gone", gone);
        scene.put(relays);
        await watch.for("a slice that is back", back);

        // The same slice says that it is of another pool.
        const { labels } = relaysOf(mode, "b").metadata;
        scene.put(relaysOf(mode, "a", { ...relays.metadata, labels: labels ?? {} }));
        await watch.for("a slice with other labels", gone);
        scene.put(relays);
        await watch.for("a slice with its labels again", back);

        // It no longer is one that the mode's selector picks.
        scene.put(relaysOf(mode, "a", { ...relays.metadata, labels: { some: "label" } }));
        await watch.for("a slice without labels", gone);
        scene.put(relays);
        await watch.for("a slice with labels", back);

        scene.delete(frontendsOf(mode, "a"));
        await watch.for("no frontends", (sample) => pool("a")(sample)?.frontends.length === 0);
        expect(await explain(keyNamed("a"))).toMatchObject({
          listed: true,
          reasons: ["its frontend Service is not imported, so it has no frontends"],
        });
      }
      await watch.for("the end of the lease", ({ list }) => list?.pools.length === 0);
      expect(await explain(keyNamed("a"))).toMatchObject({
        listed: false,
        reasons: [expect.stringMatching(/^lease ended \d+ s ago$/)],
        relays_ready: 1,
        frontends_ready: 0,
      });
      const said = scene.service.stderr;
      expect(said).toMatch(
        /pool not listed pool=gcp-east\/dynamo\/a reason="no Ready endpoint of Service a-pool-relay is imported from cluster gcp-east"/,
      );
      expect(said).not.toMatch(/ERROR|WARN(?!.*not running)/);
      expectOnlyReads(scene);
    });
  }
}

/** What the lists show of slices that are none of the plainest. */
export function formTests(command: readonly string[]): void {
  for (const mode of MODES) {
    const start = (options: SceneOptions = {}) => Scene.start({ command, mode, ...options });

    test.concurrent(`${mode}: who waits for a list hears of a slice that makes it another`, async () => {
      await using scene = await start({ mode });
      await using _ = new Relays(scene.url, [poolNamed("a")]);
      await using watch = new Watch(scene.url, 100);
      // From then on time alone changes nothing.
      await watch.for("a complete list", ({ list }) => list?.complete === true);
      const [pools, routers] = [`${scene.url}/pools`, `${scene.url}/routers`];
      const [poolsTag, routersTag] = [await etagOf(pools), await etagOf(routers)];
      const forPools = waitFor(pools, poolsTag, 60);
      const forRouters = waitFor(routers, routersTag, 60);
      await Bun.sleep(500);
      scene.put(relaysOf(mode, "a"));
      const { status, body } = await forPools;
      expect(status).toBe(200);
      expect(body).toContain('"ip:10.1.0.1"');
      scene.put(
        imported(mode, WEST, "global-router", {
          endpoints: endpointsAt("10.3.0.1"),
          ports: [{ name: "http", port: 8080 }],
        }),
      );
      const replicas = await forRouters;
      expect(replicas.status).toBe(200);
      expect(replicas.body).toContain('"http://10.3.0.1:8080/"');
    });

    test.concurrent(`${mode}: relays and frontends are shown in the form of the wire, whatever their slices are like`, async () => {
      await using scene = await start();
      const named = (name: string) => (mode === "mcs" ? { name } : { original: name });
      scene.put(
        relaysOf(mode, "a", {
          ...named("a-pool-relay-bcd24"),
          addressType: "IPv6",
          endpoints: endpointsAt("2001:0DB8:0:0::1", "2001:db8::A"),
        }),
        relaysOf(mode, "a", {
          ...named("a-pool-relay-bcd25"),
          endpoints: [
            { addresses: ["10.1.0.9", "10.1.0.8"], conditions: { ready: true } },
            { addresses: ["10.1.0.10"], conditions: {} },
            { addresses: ["10.1.0.9"] },
            { addresses: ["10.1.0.7"], conditions: { ready: false } },
          ],
        }),
        relaysOf(mode, "a", {
          ...named("a-pool-relay-bcd26"),
          addressType: "FQDN",
          endpoints: endpointsAt("relay.example"),
        }),
        frontendsOf(mode, "a", {
          ...named("a-frontend-bcd24"),
          ports: [
            { name: "metrics", port: 9090 },
            { name: "http", port: 80 },
          ],
        }),
        frontendsOf(mode, "a", {
          ...named("a-frontend-bcd25"),
          addressType: "IPv6",
          endpoints: endpointsAt("2001:db8::F"),
          ports: [{ name: "web", port: 443, appProtocol: "HTTPS" }],
        }),
        frontendsOf(mode, "a", {
          ...named("a-frontend-bcd26"),
          endpoints: endpointsAt("10.2.0.3"),
          ports: [{ name: "https", port: 8443 }],
        }),
        frontendsOf(mode, "a", {
          ...named("a-frontend-bcd27"),
          endpoints: endpointsAt("10.2.0.4"),
          ports: [{ name: "http" }, { name: "grpc", port: 9001 }],
        }),
        frontendsOf(mode, "a", {
          ...named("a-frontend-bcd28"),
          endpoints: endpointsAt("10.2.0.5"),
          ports: [
            { name: "one", port: 1 },
            { name: "two", port: 2 },
          ],
        }),
      );
      await using _ = new Relays(scene.url, [poolNamed("a")]);
      await using watch = new Watch(scene.url, 100);
      const all = await watch.for(
        "all of it",
        (sample) => pool("a")(sample)?.frontends.length === 4,
      );
      expect(pool("a")(all)?.relay_identities).toEqual([
        "ip:10.1.0.10",
        "ip:10.1.0.9",
        "ip:2001:db8::1",
        "ip:2001:db8::a",
      ]);
      expect(pool("a")(all)?.frontends).toEqual([
        "http://10.2.0.1/",
        "http://10.2.0.4:9001/",
        "https://10.2.0.3:8443/",
        "https://[2001:db8::f]/",
      ]);
      expect(scene.service.stderr).toMatch(/WARN.*their addresses are names, not IP addresses/);
    });

    test.concurrent(`${mode}: routers are listed from the slices of every cluster, and from nothing else`, async () => {
      await using scene = await start();
      const ports = [{ name: "http", port: 8080 }];
      const dual = (pod: string, address: string) => ({ endpoints: [podAt(pod, address)], ports });
      const named = (name: string) => (mode === "mcs" ? { name } : { original: name });
      scene.put(
        imported(mode, "gcp-east", "global-router", {
          endpoints: [
            { addresses: ["10.3.0.2"], hostname: "router-h" },
            ...endpointsAt("10.3.0.3"),
          ],
          ports: [{ port: 443, appProtocol: "https" }],
        }),
        imported(mode, WEST, "global-router", {
          ...named("global-router-bcd24"),
          ...dual("router-0", "10.3.0.1"),
        }),
        imported(mode, WEST, "global-router", {
          ...named("global-router-bcd25"),
          addressType: "IPv6",
          ...dual("router-0", "2001:db8::1"),
        }),
        imported(mode, WEST, "global-router", { ...dual("router-x", "10.9.9.9"), namespace: "x" }),
        imported(mode, WEST, "global-router-2", dual("router-y", "10.9.9.8")),
      );
      const byAddress = ["gcp-east/10.3.0.3", "https://10.3.0.3/"] as const;
      const byHostname = ["gcp-east/router-h", "https://10.3.0.2/"] as const;
      await untilRouters(
        scene,
        ["aws-west/router-0", "http://10.3.0.1:8080/"],
        byAddress,
        byHostname,
      );
      // The same address, from two clusters, is two endpoints.
      scene.put(
        imported(mode, "gcp-east", "global-router", {
          ...named("global-router-bcd29"),
          ...dual("router-0", "10.3.0.1"),
        }),
      );
      scene.delete(imported(mode, WEST, "global-router", { ...named("global-router-bcd24") }));
      await untilRouters(
        scene,
        ["aws-west/router-0", "http://[2001:db8::1]:8080/"],
        byAddress,
        ["gcp-east/router-0", "http://10.3.0.1:8080/"],
        byHostname,
      );
      expectOnlyReads(scene);
    });
  }
}

/** Which port and which Service the routers are behind. */
export function routerFlagTests(command: readonly string[]): void {
  const start = (args: readonly string[]) => Scene.start({ command, args });

  for (const [flag, port] of [
    ["grpc", 9001],
    ["9001", 9001],
    ["8080", 8080],
  ] as const) {
    test.concurrent(`--router-namespace, --router-service and --router-port ${flag} say which routers are meant`, async () => {
      await using scene = await start([
        "--router-namespace=edge",
        "--router-service=r",
        `--router-port=${flag}`,
      ]);
      scene.put(
        imported("mcs", WEST, "global-router", { endpoints: endpointsAt("10.9.9.9") }),
        imported("mcs", WEST, "r", {
          namespace: "edge",
          endpoints: [podAt("r-0", "10.3.0.1")],
          ports: [
            { name: "http", port: 8080 },
            { name: "grpc", port: 9001 },
          ],
        }),
      );
      await untilRouters(scene, ["aws-west/r-0", `http://10.3.0.1:${port}/`]);
    });
  }

  test.concurrent(`routers with several ports are left out without --router-port, and the log says to set it`, async () => {
    await using scene = await start([]);
    scene.put(
      imported("mcs", WEST, "global-router", {
        endpoints: [podAt("r-0", "10.3.0.1")],
        ports: [
          { name: "http", port: 8080 },
          { name: "grpc", port: 9001 },
        ],
      }),
      imported("mcs", "gcp-east", "global-router", {
        endpoints: [podAt("r-0", "10.3.0.2")],
        ports: [{ name: "http", port: 8080 }],
      }),
    );
    await untilRouters(scene, ["gcp-east/r-0", "http://10.3.0.2:8080/"]);
    await scene.service.says(/WARN.*routers are left out.*set --router-port/);
  });
}

/** Slices that somebody named by hand, and those that never change hands. */
export function handMadeTests(command: readonly string[]): void {
  test.concurrent("a slice with a hand-made name is of the longest cluster that has a live pool, and moves as these come and go", async () => {
    await using scene = await Scene.start({ command, mode: "karmada" });
    const handMade = karmadaSlice("aws-west-2", "a-pool-relay", {
      original: "by-hand",
      endpoints: endpointsAt("10.1.0.2"),
    });
    // Whose it is shows its name, though its start is another cluster's.
    const generated = relaysOf("karmada", "b", { cluster: "aws-west-2" });
    scene.put(handMade, generated);
    await scene.service.says(/WARN.*which cluster they are from can't be told.*by-hand/);
    const of = (cluster_id: string, dgd_name: string) => ({
      key: { cluster_id, namespace: "dynamo", dgd_name },
    });
    await using watch = new Watch(scene.url, 100);
    const shows = (...expected: readonly string[]) =>
      watch.for(`just ${expected}`, ({ list }) =>
        Bun.deepEquals(
          list?.pools.map(({ key }) => `${key.cluster_id}/${key.dgd_name}`),
          [...expected],
        ),
      );
    await using _ = new Relays(scene.url, [
      poolNamed("a", of("aws-west", "a")),
      poolNamed("b", of("aws-west", "b")),
      poolNamed("a", of("gcp-east", "a")),
    ]);
    await shows("aws-west/a");
    {
      await using _longer = new Relays(scene.url, [
        poolNamed("a", of("aws-west-2", "a")),
        poolNamed("b", of("aws-west-2", "b")),
      ]);
      await shows("aws-west-2/a", "aws-west-2/b");
    }
    await shows("aws-west/a");
    // The warning was of a slice that had no owner then.
    expect(scene.service.lines.filter((line) => line.includes("can't be told"))).toHaveLength(1);
  });

  test.concurrent("a slice of a MultiClusterService is of the cluster in its annotation", async () => {
    await using scene = await Scene.start({ command, mode: "karmada" });
    const managedBy = (manager: string) => ({
      labels: {
        "kubernetes.io/service-name": "a-pool-relay",
        "endpointslice.kubernetes.io/managed-by": manager,
        // Names the importer, in a member cluster.
        "work.karmada.io/namespace": "karmada-es-gcp-east",
      },
      annotations: { "endpointslice.karmada.io/provision-cluster": WEST },
    });
    scene.put(
      makeSlice({
        name: "aws-west-a-pool-relay-bcd24",
        ...managedBy("endpointslice-dispatch-controller.karmada.io"),
        endpoints: endpointsAt("10.1.0.1"),
      }),
      makeSlice({
        name: "a-pool-relay-bcd25",
        ...managedBy("endpointslice-controller.k8s.io"),
        endpoints: endpointsAt("10.9.9.9"),
      }),
    );
    await registerSoon(
      scene.url,
      poolNamed("a", { key: { ...keyNamed("a"), cluster_id: "gcp-east" } }),
    );
    await registerSoon(scene.url, poolNamed("a"));
    await using watch = new Watch(scene.url, 100);
    const { list } = await watch.for("the pool", ({ list }) => lists(list, "a"));
    expect(list?.pools.map(({ key, relay_identities }) => [key, relay_identities])).toEqual([
      [keyNamed("a"), ["ip:10.1.0.1"]],
    ]);
  });
}
