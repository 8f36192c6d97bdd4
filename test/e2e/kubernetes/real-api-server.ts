import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { ApiGate } from "../../support/api-gate.ts";
import {
  answerOf,
  frontendsOf,
  imported,
  MODES,
  objectOf,
  relaysOf,
  SELECTORS,
  startImporting,
  WEST,
} from "../../support/imports.ts";
import {
  KubeApiServer,
  type kubernetesPrograms,
  READER_TOKEN,
  STRANGER_TOKEN,
} from "../../support/kube-apiserver.ts";
import { dataOf } from "../../support/kubeconfig.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { forEachOf, temporaryFolder } from "../../support/service.ts";
import { endpointsAt, mcsSlice, podAt } from "../../support/slices.ts";
import { until } from "../../support/until.ts";
import { lists, names, Relays, registerSoon, type Sample, Watch } from "../../support/watch.ts";

const START_MS = 120_000;
const PATIENT_MS = 45_000;
const MANY = 1200;

type Programs = NonNullable<ReturnType<typeof kubernetesPrograms>>;

/** Says in the log, too, what is mended by asking again at once. */
const TALKATIVE = { DYN_LOG: "info,kubernetes=debug" };

/** What `command` starts, against a kube-apiserver. The tests share it, and restart it. */
export function realApiServerTests(command: readonly string[], programs: Programs): void {
  let server: KubeApiServer;
  beforeAll(async () => {
    server = await KubeApiServer.start(programs);
  }, START_MS);
  afterAll(() => server?.[Symbol.asyncDispose]());

  const put = async (...slices: readonly Parameters<typeof objectOf>[0][]) => {
    for (const slice of slices) await server.put(objectOf(slice));
  };
  const reader = { token: READER_TOKEN };
  /** A gate before the server, and how a kubeconfig names it. */
  const openGate = async () => {
    const gate = new ApiGate(server.certificates, server.url);
    const ca = dataOf(await Bun.file(server.certificates.root).text());
    return { gate, cluster: { server: gate.url, "certificate-authority-data": ca } };
  };
  const alwaysLists = (name: string, samples: readonly Sample[]) => {
    for (const { status, body, list } of samples) {
      expect(status, body).toBe(200);
      expect(lists(list, name), body).toBe(true);
    }
  };

  for (const mode of MODES) {
    test(`${mode}: joins with a token that may get, list and watch EndpointSlices, and asks for nothing else`, async () => {
      const { gate, cluster } = await openGate();
      using _gate = gate;
      const name = `real-${mode}`;
      await put(
        relaysOf(mode, name),
        frontendsOf(mode, name),
        imported(mode, WEST, "global-router", {
          namespace: mode,
          endpoints: [podAt("r-0", "10.3.0.1")],
          ports: [{ name: "http", port: 8080 }],
        }),
      );
      await using service = await startImporting({
        command,
        mode,
        user: reader,
        cluster,
        args: ["--router-namespace", mode],
      });
      await using _ = new Relays(service.url, [poolNamed(name), poolNamed("no-relays")]);
      await using watch = new Watch(service.url);
      const { list } = await watch.for("a complete list", ({ list }) =>
        Boolean(list?.complete && lists(list, name)),
      );
      expect(list?.pools).toEqual([
        {
          ...poolNamed(name),
          frontends: ["http://10.2.0.1:8000/"],
          relay_identities: ["ip:10.1.0.1"],
        },
      ]);
      expect(await answerOf(service.url, "/routers")).toEqual([
        200,
        '{"routers":[{"replica":"aws-west/r-0","url":"http://10.3.0.1:8080/"}]}',
      ]);
      const notReady = { addresses: ["10.1.0.1"], conditions: { ready: false } };
      await put(relaysOf(mode, name, { endpoints: [notReady] }));
      await watch.for("an endpoint that is not ready", ({ list }) => list?.pools.length === 0);
      await put(relaysOf(mode, name, { endpoints: endpointsAt("10.1.0.7") }));
      await watch.for("one that is", ({ list }) => lists(list, name));
      await server.delete("dynamo", relaysOf(mode, name).metadata.name);
      await watch.for("a slice that is gone", ({ list }) => list?.pools.length === 0);
      expect(service.stderr).not.toMatch(/ERROR|WARN(?!.*not running)/);
      for (const { method, path, query } of gate.requests) {
        expect([method, path]).toEqual(["GET", "/apis/discovery.k8s.io/v1/endpointslices"]);
        expect(query.get("labelSelector")).toBe(SELECTORS[mode]);
      }
      expect(await service.stop()).toEqual({ status: 0, signal: null });
    });
  }

  test("a token that may do nothing is refused in words, and is enough once it is granted more", async () => {
    const { cluster } = server;
    await using stranger = await startImporting({
      command,
      user: { token: STRANGER_TOKEN },
      cluster,
    });
    await stranger.says(/WARN.*fault=denied.*forbids list on endpointslices.discovery.k8s.io/);
    expect(await answerOf(stranger.url, "/healthz")).toEqual([503, ""]);
    await server.revoke();
    try {
      await using service = await startImporting({ command, user: reader, cluster });
      await service.says(/WARN.*fault=denied.*forbids list/);
      await server.grant();
      await until("it to be healthy", async () => {
        const [status] = await answerOf(service.url, "/healthz");
        return status === 200 || undefined;
      });
    } finally {
      // Whatever became of it, the next test needs it.
      await server.grant().catch(() => {});
    }
  });

  test(
    "1,200 slices come in pages, of which a compaction between two makes the list begin again",
    async () => {
      const many = Array.from({ length: MANY }, (_, n) => mcsSlice("many", `m${n}-pool-relay`));
      // Makes the namespace.
      await put(...many.slice(0, 1));
      await forEachOf(many, (slice) =>
        put({
          ...slice,
          endpoints: endpointsAt("10.4.0.1"),
          ports: [{ name: "relay", port: 9000 }],
        }),
      );
      const { gate, cluster } = await openGate();
      using _ = gate;
      let changes = 0;
      gate.before = async ({ query }) => {
        if (!query.has("continue") || changes > 0) return undefined;
        changes += 1;
        await put(relaysOf("mcs", "between"));
        await server.compact();
        return undefined;
      };
      await using service = await startImporting({
        command,
        lease: 300,
        user: reader,
        cluster,
        env: TALKATIVE,
      });
      const of = (dgd_name: string) => ({
        key: { cluster_id: "many", namespace: "dynamo", dgd_name },
      });
      for (const n of [0, 499, 500, 999, 1000, MANY - 1]) {
        await registerSoon(service.url, poolNamed("m", of(`m${n}`)));
      }
      await registerSoon(service.url, poolNamed("between"));
      await using watch = new Watch(service.url);
      await watch.for("all of them", ({ list }) => list?.pools.length === 7);
      const firstLists = gate.requests.filter(
        ({ query }) => !query.has("continue") && !query.has("watch"),
      );
      const [first] = watch.samples.filter(({ list }) => list !== undefined);
      expect(first?.list?.pools.length, first?.body).toBe(7);
      expect(changes).toBe(1);
      await service.says(/fault=expired.*no longer has the version that list asked for, with 410/);
      expect(firstLists).toHaveLength(2);
      expect(gate.requests.filter(({ query }) => query.has("continue"))).toHaveLength(3);
      await forEachOf(many, ({ metadata }) => server.delete(metadata.namespace, metadata.name));
      await watch.for("none of them", ({ list }) => Bun.deepEquals(names(list), ["between"]));
      await server.delete("dynamo", relaysOf("mcs", "between").metadata.name);
    },
    START_MS,
  );

  test(
    "a restart loses no pool, nor does a compaction meanwhile, and what has changed shows soon after",
    async () => {
      const { gate, cluster } = await openGate();
      using _gate = gate;
      await put(relaysOf("mcs", "stays"), relaysOf("mcs", "goes"));
      await using service = await startImporting({
        command,
        user: reader,
        cluster,
        env: TALKATIVE,
      });
      await using direct = await startImporting({ command, user: reader, cluster: server.cluster });
      const pools = ["stays", "goes", "comes"].map((name) => poolNamed(name));
      await using _one = new Relays(service.url, pools);
      await using _other = new Relays(direct.url, pools);
      await using watch = new Watch(service.url, 100);
      await using other = new Watch(direct.url, 100);
      const both = [watch, other];
      const whole = (...expected: readonly string[]) =>
        Promise.all(
          both.map((each) =>
            each.for(
              `a complete list of ${expected}`,
              ({ list }) => Boolean(list?.complete && Bun.deepEquals(names(list), [...expected])),
              PATIENT_MS,
            ),
          ),
        );
      await whole("goes", "stays");
      const from = both.map(({ samples }) => samples.length);

      // While one of the two can't watch, its version is compacted away, also in the server's memory.
      gate.before = async () => new Response("shut", { status: 503 });
      gate.endWatches();
      await server.stop();
      await direct.says(/WARN.*the slices can't be watched; the last state is served/);
      await server.startAgain();
      await put(relaysOf("mcs", "comes", { endpoints: endpointsAt("10.1.0.3") }));
      await server.delete("dynamo", relaysOf("mcs", "goes").metadata.name);
      await server.compact();
      await server.stop();
      await server.startAgain();
      gate.before = () => undefined;
      await whole("comes", "stays");
      await service.says(/fault=expired.*no longer has the version that watch asked for, with 410/);
      for (const [index, { samples }] of both.entries())
        alwaysLists("stays", samples.slice(from[index]));
      for (const each of [service, direct]) {
        await each.says(/INFO.*the slices are watched again/);
        expect(await answerOf(each.url, "/healthz")).toEqual([200, ""]);
      }
      await server.delete("dynamo", relaysOf("mcs", "comes").metadata.name);
      await server.delete("dynamo", relaysOf("mcs", "stays").metadata.name);
    },
    START_MS,
  );

  test(
    "a service account's token that is void is no loss once its file holds the next",
    async () => {
      using folder = temporaryFolder();
      const tokenFile = join(folder.path, "token");
      await Bun.write(tokenFile, await server.newServiceAccountToken("rotated"));
      await put(relaysOf("mcs", "rotated"));
      const { gate, cluster } = await openGate();
      using _gate = gate;
      await using service = await startImporting({ command, user: { tokenFile }, cluster });
      await using _ = new Relays(service.url, [poolNamed("rotated")]);
      await using watch = new Watch(service.url, 100);
      await watch.for("a complete list", ({ list }) =>
        Boolean(list?.complete && lists(list, "rotated")),
      );
      const from = watch.samples.length;
      const next = await server.newServiceAccountToken("rotated");
      // The server knows a token for some seconds after its account is gone.
      await until(
        "the old token to be refused",
        async () => {
          gate.endWatches();
          await Bun.sleep(1000);
          return service.stderr.includes("does not accept the token") || undefined;
        },
        PATIENT_MS,
      );
      await Bun.write(tokenFile, next);
      await put(frontendsOf("mcs", "rotated"));
      await watch.for("a change", ({ list }) => list?.pools[0]?.frontends.length === 1, PATIENT_MS);
      alwaysLists("rotated", watch.samples.slice(from));
    },
    START_MS,
  );
}
