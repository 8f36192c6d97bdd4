import { expect, test } from "bun:test";
import {
  awsEnvironment,
  type Emulator,
  type Item,
  PATIENT_MS,
  type ReplicaOptions,
  startReplica,
  type Table,
} from "../../support/dynamodb.ts";
import { explained } from "../../support/explained.ts";
import { FaultProxy } from "../../support/fault-proxy.ts";
import { itemNamed, keyNamed, poolNamed, skNamed } from "../../support/pool-items.ts";
import { getPools, postText, registration } from "../../support/relay.ts";
import { freePort } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { etagOf, waitFor } from "../../support/waiter.ts";
import { lists, names, Relays, registerSoon, sample, Watch } from "../../support/watch.ts";

const DEADLINE_MS = 90_000;

/** When an item says that its pool was registered. */
async function renewedAtMs(table: Table, sk: string): Promise<number> {
  return Number((await table.get(sk))?.renewed_at?.N);
}

/**
 * What replicas that share a table promise, against what `command` starts and any emulator.
 */
export function replicaTests(command: readonly string[], emulator: () => Emulator): void {
  const start = (table: Table, options: Partial<ReplicaOptions> = {}) =>
    startReplica(table, { command, ...options });

  test.concurrent(
    "two and three replicas list each other's pools within a poll, in the same bytes",
    async () => {
      const table = await emulator().createTable();
      await using one = await start(table, { lease: 60 });
      await using two = await start(table, { lease: 60 });
      const listAll = async (urls: readonly string[], expected: readonly string[]) => {
        const watches = urls.map((url) => new Watch(url));
        const seen = await Promise.all(
          watches.map((watch) =>
            watch.for(`a list of ${expected}`, ({ list }) =>
              Bun.deepEquals(names(list), [...expected]),
            ),
          ),
        );
        for (const watch of watches) await watch[Symbol.asyncDispose]();
        expect(new Set(seen.map(({ body }) => body)).size).toBe(1);
        expect(new Set(seen.map(({ etag }) => etag)).size).toBe(1);
      };
      await registerSoon(one.url, poolNamed("a"));
      await registerSoon(two.url, poolNamed("c"));
      await listAll([one.url, two.url], ["a", "c"]);
      await using three = await start(table, { lease: 60 });
      await registerSoon(three.url, poolNamed("b"));
      await listAll([one.url, two.url, three.url], ["a", "b", "c"]);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "who waits at one replica hears of a pool that registers at another, with the next poll",
    async () => {
      const table = await emulator().createTable();
      await using one = await start(table, { lease: 3 });
      await using two = await start(table, { lease: 3 });
      await using _ = new Relays(one.url, [poolNamed("a")]);
      await using watch = new Watch(two.url);
      // From then on time alone changes nothing.
      await watch.for("a complete list", ({ list }) => list?.complete === true && lists(list, "a"));
      const pools = `${two.url}/pools`;
      const etag = await etagOf(pools);
      const waiting = waitFor(pools, etag, 60);
      await registerSoon(one.url, poolNamed("b"));
      const { status, body } = await waiting;
      expect(status).toBe(200);
      expect(body).toContain('"dgd_name":"b"');
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a replica explains pools of another one, and its last read of the table",
    async () => {
      const table = await emulator().createTable();
      await table.put(itemNamed("a", { leaseSecs: 60, writtenIn: "eu-central-1" }));
      await table.put(itemNamed("b", { leaseSecs: 60, body: {} }));
      await using service = await start(table, { lease: 60 });
      const {
        pools,
        service: facts,
        ...rest
      } = await until("the table to be read", async () => {
        const explanation = await explained(service.url);
        return explanation.table?.items === 2 ? explanation : undefined;
      });
      expect(facts).toMatchObject({ mode: "registrations", store: "dynamodb", complete: false });
      expect(facts.reasons).toEqual([
        "less than one lease of 60 s has passed since the start",
        "items of the table that may be of live pools can't be decoded: 1",
      ]);
      expect(pools).toMatchObject([
        { key: keyNamed("a"), listed: true, reasons: [], written_in: "eu-central-1" },
        { key: keyNamed("b"), reasons: ["its item in the table can't be decoded"] },
      ]);
      expect(rest).toEqual({
        slices: null,
        table: {
          last_read_s_ago: expect.any(Number),
          last_read_took_ms: expect.any(Number),
          items: 2,
          pages: 1,
          last_error: null,
        },
      });
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a replica that is killed and started again lists everything with its first read",
    async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      proxy.pageSize = 3;
      const endpoint = proxy.url;
      const expected = Array.from({ length: 10 }, (_, index) => `pool-${index}`);
      {
        await using first = await start(table, { endpoint, lease: 60 });
        for (const name of expected) await registerSoon(first.url, poolNamed(name));
        first.kill("SIGKILL");
        await first.ended();
      }
      await using again = await start(table, { endpoint, lease: 60 });
      // The first list that it gives, and no earlier one.
      const refused: number[] = [];
      for (;;) {
        const { status, list } = await sample(again.url);
        if (list !== undefined) {
          expect(names(list)).toEqual(expected);
          // One lease has not passed since the start.
          expect(list.complete).toBe(false);
          break;
        }
        refused.push(status);
        await Bun.sleep(5);
      }
      expect(refused.every((status) => status === 503)).toBe(true);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a pool of another region stays listed for the grace after its lease with complete false, one of the own region does not",
    async () => {
      const table = await emulator().createTable();
      const [lease, grace] = [3, 3];
      await using east = await start(table, { lease, grace, region: "us-east-1" });
      await using west = await start(table, { lease, grace, region: "us-west-2" });
      await using watch = new Watch(east.url);
      {
        await using _ = new Relays(east.url, [poolNamed("own")]);
        await using __ = new Relays(west.url, [poolNamed("other")]);
        await watch.for("a complete list of both pools", ({ list }) =>
          Boolean(list?.complete && lists(list, "own") && lists(list, "other")),
        );
      }
      expect((await table.get(skNamed("own")))?.written_in).toEqual({ S: "us-east-1" });
      expect((await table.get(skNamed("other")))?.written_in).toEqual({ S: "us-west-2" });
      // Nobody registers any more.
      const ownEndsAtMs = (await renewedAtMs(table, skNamed("own"))) + lease * 1000;
      const otherLapsesAtMs = (await renewedAtMs(table, skNamed("other"))) + lease * 1000;
      const otherEndsAtMs = otherLapsesAtMs + grace * 1000;
      await watch.for("an empty list", ({ list }) => names(list)?.length === 0, PATIENT_MS);
      await watch.for("a complete list", ({ list }) => list?.complete === true, PATIENT_MS);

      const settled = watch.samples.findIndex(
        ({ list }) => lists(list, "own") && lists(list, "other"),
      );
      const inGrace = watch.samples.slice(settled).filter(({ sentAtMs, answeredAtMs, list }) => {
        if (answeredAtMs <= ownEndsAtMs) expect(lists(list, "own")).toBe(true);
        if (answeredAtMs <= otherEndsAtMs) expect(lists(list, "other")).toBe(true);
        return sentAtMs > otherLapsesAtMs && lists(list, "other");
      });
      expect(inGrace.length).toBeGreaterThan(2);
      for (const { list, sentAtMs } of inGrace) {
        expect(list?.complete, `${sentAtMs - otherLapsesAtMs} ms after the lease`).toBe(false);
      }
      expect(inGrace.some(({ list }) => !lists(list, "own"))).toBe(true);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "items have exactly the attributes, types and sort keys of the reference",
    async () => {
      const table = await emulator().createTable();
      await using replica = await start(table, { lease: 60, heartbeat: 4, region: "eu-central-1" });
      const keys = {
        "aws-west/dynamo/mocker": ["aws-west", "dynamo", "mocker"],
        "a%2Fb/c%25d/%252F": ["a/b", "c%d", "%2F"],
        "__proto__/constructor/toString": ["__proto__", "constructor", "toString"],
        "%2F/%25/..": ["/", "%", ".."],
        "süd/名前空間/🦙 three": ["süd", "名前空間", "🦙 three"],
        [`${"a".repeat(253)}/${"b".repeat(253)}/${"%25".repeat(84)}`]: [
          "a".repeat(253),
          "b".repeat(253),
          "%".repeat(84),
        ],
      };
      for (const [sk, [cluster_id, namespace, dgd_name]] of Object.entries(keys)) {
        const key = { cluster_id, namespace, dgd_name };
        const body = registration({
          key: { dgd_name, unknown: 1, namespace, cluster_id },
          capacity: [{ workers: 8, sku: "H100" }],
          frontends: ["HTTP://10.43.1.2:80"],
          unknown: true,
        });
        const beforeMs = Date.now();
        const response = await postText(replica.url, JSON.stringify(body));
        expect(await response.json()).toEqual({ heartbeat_interval_s: 4, lease_duration_s: 60 });
        const afterMs = Date.now();
        const item: Item | undefined = await table.get(sk);
        const renewed = Number(item?.renewed_at?.N);
        expect(item).toEqual({
          pk: { S: "pool" },
          sk: { S: sk },
          registration: { S: item?.registration?.S ?? "" },
          renewed_at: { N: String(renewed) },
          lease_s: { N: "60" },
          written_in: { S: "eu-central-1" },
          expires_at: { N: String(Math.floor(renewed / 1000) + 604_800) },
        });
        expect(renewed).toBeGreaterThanOrEqual(beforeMs);
        expect(renewed).toBeLessThanOrEqual(afterMs);
        expect(JSON.parse(item?.registration?.S ?? "")).toEqual({
          key,
          location: { region: "us-west-2", availability_zone: "us-west-2a", datacenter: null },
          model: "Qwen/Qwen3-0.6B",
          capabilities: ["aggregated"],
          frontends: ["http://10.43.1.2/"],
          capacity: [{ sku: "H100", workers: 8 }],
        });
      }
      // And what was written is read back as it was meant, by a replica that knows nothing of it.
      await using reader = await start(table, { lease: 60 });
      await using watch = new Watch(reader.url);
      const { list } = await watch.for("a list", ({ status }) => status === 200);
      expect(list?.pools.map(({ key }) => Object.values(key))).toEqual(
        Object.values(keys).sort((a, b) => (a.join("\0") < b.join("\0") ? -1 : 1)),
      );
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "proxies in the environment never capture what goes to a loopback endpoint",
    async () => {
      const table = await emulator().createTable();
      const nobody = `http://127.0.0.1:${await freePort()}`;
      const variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
      const proxies = Object.fromEntries(
        variables.flatMap((name) => [
          [name, nobody],
          [name.toLowerCase(), nobody],
        ]),
      );
      await using replica = await start(table, {
        lease: 60,
        env: { ...awsEnvironment, ...proxies },
      });
      await registerSoon(replica.url, poolNamed("a"));
      await using watch = new Watch(replica.url);
      await watch.for("the pool", ({ list }) => lists(list, "a"));
    },
    DEADLINE_MS,
  );
}

/** What one replica lists, and for how long. */
export function listingTests(emulator: () => Emulator): void {
  test.concurrent(
    "a pool is listed until its lease and the skew have passed, and no longer",
    async () => {
      const table = await emulator().createTable();
      const [lease, skew] = [3, 1];
      await using replica = await startReplica(table, { lease, skew, grace: 60 });
      await registerSoon(replica.url, poolNamed("a"));
      const endsAtMs = (await renewedAtMs(table, skNamed("a"))) + (lease + skew) * 1000;
      await using watch = new Watch(replica.url);
      const { sentAtMs } = await watch.for("an empty list", ({ list }) => list?.pools.length === 0);
      const read = watch.samples.filter(({ list }) => list !== undefined);
      for (const { answeredAtMs, list } of read) {
        if (answeredAtMs <= endsAtMs) expect(lists(list, "a")).toBe(true);
      }
      // Not a figure to rely on: a machine that is busy may take its time.
      expect(sentAtMs - endsAtMs).toBeLessThan(5000);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a later read of the table is the truth, whatever the clocks in it say",
    async () => {
      const table = await emulator().createTable();
      await using replica = await startReplica(table, { lease: 60, skew: 30 });
      await registerSoon(replica.url, poolNamed("stays"));
      await registerSoon(replica.url, poolNamed("changes"));
      await registerSoon(replica.url, poolNamed("goes"));
      // Another replica's clock is behind.
      const item = itemNamed("changes", {
        leaseSecs: 60,
        renewedAtMs: Date.now() - 20_000,
        body: poolNamed("changes", { model: "another" }),
      });
      await table.put(item);
      await table.delete(skNamed("goes"));
      await using watch = new Watch(replica.url);
      await watch.for("what the table says", ({ list }) =>
        Bun.deepEquals(
          list?.pools.map(({ key, model }) => [key, model]),
          [
            [keyNamed("changes"), "another"],
            [keyNamed("stays"), "Qwen/Qwen3-0.6B"],
          ],
        ),
      );
      expect((await getPools(replica.url)).pools).toHaveLength(2);
    },
    DEADLINE_MS,
  );
}
