import { describe, expect, test } from "bun:test";
import {
  type Emulator,
  PATIENT_MS,
  type ReplicaOptions,
  startReplica,
} from "../../support/dynamodb.ts";
import {
  delayed,
  drop,
  FaultProxy,
  Hold,
  onLaterPages,
  type ProxiedRequest,
  refuse,
} from "../../support/fault-proxy.ts";
import { itemNamed, poolNamed, skNamed } from "../../support/pool-items.ts";
import { getPools } from "../../support/relay.ts";
import { until } from "../../support/until.ts";
import { lists, names, Relays, registerSoon, timedPost, Watch } from "../../support/watch.ts";

/** What the service asks of DynamoDB, and how it puts the answers together. */
export function readAndWriteTests(emulator: () => Emulator): void {
  /** A table, a proxy before it, and what starts a replica behind that. */
  const setUp = async () => {
    const table = await emulator().createTable();
    const proxy = await FaultProxy.start(table.endpoint);
    return {
      table,
      proxy,
      start: (options: ReplicaOptions = {}) =>
        startReplica(table, { endpoint: proxy.url, ...options }),
      [Symbol.dispose]: () => proxy[Symbol.dispose](),
    };
  };

  /** Waits for the table to have been read as it is now. */
  const untilRead = async (proxy: FaultProxy) => {
    const begun = proxy.reads().length;
    // A read is over when the one after it begins.
    await until("the next read", () => (proxy.reads().length > begun + 1 ? true : undefined));
  };

  describe("a registration in it", () => {
    test.concurrent("is one UpdateItem without a condition that asks for the old values back", async () => {
      using given = await setUp();
      const { proxy, table } = given;
      await using replica = await given.start({ heartbeat: 4, lease: 60 });
      const bodies = [poolNamed("a"), poolNamed("b"), poolNamed("a"), poolNamed("a")];
      for (const body of bodies) {
        expect((await timedPost(replica.url, body)).status).toBe(200);
      }
      // Nothing comes after the answer either.
      await untilRead(proxy);
      const updates = proxy.of("UpdateItem");
      expect(updates.map(({ body }) => body.Key)).toEqual(
        ["a", "b", "a", "a"].map((name) => ({ pk: { S: "pool" }, sk: { S: skNamed(name) } })),
      );
      for (const { body } of updates) {
        expect(body.TableName).toBe(table.name);
        expect(["UPDATED_OLD", "ALL_OLD"]).toContain(String(body.ReturnValues));
        expect(body.ConditionExpression).toBeUndefined();
        expect(body.Expected).toBeUndefined();
      }
      const operations = new Set(proxy.requests.map(({ operation }) => operation));
      // What the IAM policy of the reference allows, and no more.
      expect([...operations].sort()).toEqual([
        "DescribeTable",
        "DescribeTimeToLive",
        "Query",
        "UpdateItem",
      ]);
    });

    test.concurrent("is written anew with each heartbeat, and changes neither the list nor its ETag", async () => {
      using given = await setUp();
      await using replica = await given.start({ lease: 3 });
      await using watch = new Watch(replica.url);
      await watch.for("the first list", ({ status }) => status === 200);
      {
        await using _ = new Relays(replica.url, [poolNamed("a")]);
        await watch.for("a complete list", ({ list }) => list?.complete === true);
      }
      const renewals = new Set<string>();
      for (let beat = 0; beat < 6; beat += 1) {
        await registerSoon(replica.url, poolNamed("a"));
        const item = await given.table.get(skNamed("a"));
        renewals.add(`${item?.renewed_at?.N} ${item?.registration?.S}`);
        await Bun.sleep(500);
      }
      expect(renewals.size).toBe(6);
      expect(new Set([...renewals].map((each) => each.replace(/^\d+ /, ""))).size).toBe(1);
      const complete = watch.samples.filter(({ list }) => list?.complete);
      expect(new Set(complete.map(({ body }) => body)).size).toBe(1);
      expect(new Set(complete.map(({ etag }) => etag)).size).toBe(1);
      expect(replica.lines.filter((line) => line.includes("pool added"))).toHaveLength(1);
    });

    test.concurrent("is listed here at once, and a read that began before it was answered does not undo it", async () => {
      using given = await setUp();
      const { proxy, table } = given;
      await table.put(itemNamed("changes", { leaseSecs: 60 }));
      await using replica = await given.start({ lease: 60, poll: 1 });
      await using watch = new Watch(replica.url, 20);
      await watch.for("the first list", ({ list }) => lists(list, "changes"));
      const hold = new Hold();
      proxy.break(hold.fault, "Query");
      await until("an answer to be held", () => (hold.held > 0 ? true : undefined));
      // The answer that is held knows nothing of these.
      await registerSoon(replica.url, poolNamed("new"));
      await registerSoon(replica.url, poolNamed("changes", { model: "another" }));
      const isAsWritten = ({ pools }: Awaited<ReturnType<typeof getPools>>) =>
        pools.map(({ key, model }) => `${key.dgd_name} ${model}`).join() ===
        "changes another,new Qwen/Qwen3-0.6B";
      expect(isAsWritten(await getPools(replica.url))).toBe(true);
      const from = watch.samples.length;
      hold.letGo();
      proxy.mend();
      await untilRead(proxy);
      await watch.for("another list", () => true);
      const later = watch.samples.slice(from);
      expect(later.length).toBeGreaterThan(3);
      for (const { list, body } of later) {
        expect(list !== undefined && isAsWritten(list), body).toBe(true);
      }
      expect(replica.stderr).not.toContain("expired");
    });

    test.concurrent("that is answered while no read has ended yet is listed with the first", async () => {
      using given = await setUp();
      const hold = new Hold();
      given.proxy.break(hold.fault, "Query");
      await using replica = await given.start({ lease: 60 });
      await until("an answer to be held", () => (hold.held > 0 ? true : undefined));
      await registerSoon(replica.url, poolNamed("a"));
      expect((await fetch(`${replica.url}/healthz`)).status).toBe(503);
      await using watch = new Watch(replica.url, 10);
      hold.letGo();
      given.proxy.mend();
      const { list } = await watch.for("the first list", ({ status }) => status === 200);
      expect(names(list)).toEqual(["a"]);
    });
  });

  describe("is read, which", () => {
    test.concurrent("is a strongly consistent Query on the one partition", async () => {
      using given = await setUp();
      const { proxy, table } = given;
      await using _ = await given.start();
      await untilRead(proxy);
      for (const { body } of proxy.of("Query")) {
        expect(body).toMatchObject({ TableName: table.name, ConsistentRead: true });
        expect(String(body.KeyConditionExpression)).toMatch(/^pk = :\w+$/);
        expect(Object.values(body.ExpressionAttributeValues ?? {})).toEqual([{ S: "pool" }]);
        expect(body.FilterExpression).toBeUndefined();
        expect(body.IndexName).toBeUndefined();
      }
    });

    test.concurrent("finds all pools, however small the pages are", async () => {
      using given = await setUp();
      const { proxy, table } = given;
      const expected = Array.from({ length: 25 }, (_, index) => `pool-${10 + index}`);
      for (const name of expected) await table.put(itemNamed(name, { leaseSecs: 60 }));
      proxy.pageSize = 4;
      await using replica = await given.start({ lease: 60 });
      await using watch = new Watch(replica.url);
      await watch.for("a list", ({ status }) => status === 200);
      await untilRead(proxy);
      for (const { list } of watch.samples.filter(({ status }) => status === 200)) {
        expect(names(list)).toEqual(expected);
      }
      const pages = proxy.of("Query").filter(({ body }) => body.ExclusiveStartKey !== undefined);
      expect(pages.length).toBeGreaterThanOrEqual(12);
      // A page is asked for once the one before it is there.
      expect(Math.max(...proxy.of("Query").map(({ atOnce }) => atOnce))).toBe(1);
    });

    const gapsMs = (requests: readonly ProxiedRequest[]) =>
      requests
        .slice(1)
        .map(({ startedAtMs }, index) => startedAtMs - (requests[index]?.startedAtMs ?? 0));
    const median = (numbers: readonly number[]) =>
      numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

    test.concurrent("happens one poll interval apart, from start to start", async () => {
      using given = await setUp();
      const { proxy } = given;
      // From end to start it would be 1.8 s.
      proxy.break(delayed(800), "Query");
      await using _ = await given.start({ lease: 10, poll: 1 });
      await until(
        "nine reads",
        () => (proxy.of("Query").length >= 9 ? true : undefined),
        PATIENT_MS,
      );
      // The first is the start's.
      const gaps = gapsMs(proxy.of("Query").slice(1));
      expect(median(gaps), String(gaps)).toBeGreaterThan(850);
      expect(median(gaps), String(gaps)).toBeLessThan(1500);
      expect(Math.max(...proxy.of("Query").map(({ atOnce }) => atOnce))).toBe(1);
    });

    test.concurrent("is never done twice at once, also when it takes longer than the interval", async () => {
      using given = await setUp();
      const { proxy, table } = given;
      proxy.break(delayed(1400), "Query");
      await table.put(itemNamed("a", { leaseSecs: 60 }));
      await using replica = await given.start({ lease: 10, poll: 1 });
      await until(
        "six reads",
        () => (proxy.of("Query").length >= 6 ? true : undefined),
        PATIENT_MS,
      );
      expect(Math.max(...proxy.of("Query").map(({ atOnce }) => atOnce))).toBe(1);
      expect(names(await getPools(replica.url))).toEqual(["a"]);
    });

    test.concurrent("that breaks off half-way counts as none", async () => {
      using given = await setUp();
      const { proxy, table } = given;
      proxy.pageSize = 2;
      for (const name of ["b", "c", "d", "e"]) await table.put(itemNamed(name, { leaseSecs: 60 }));
      await using replica = await given.start({ lease: 4, poll: 1 });
      await using watch = new Watch(replica.url);
      await watch.for("a complete list", ({ list }) => list?.complete === true);
      for (const fault of [
        drop,
        refuse(400, "ValidationException"),
        refuse(500, "InternalServerError"),
      ]) {
        proxy.break(onLaterPages(fault), "Query");
        const brokenFrom = watch.samples.length;
        await untilRead(proxy);
        // Now neither of these is seen: one would be on the first page, one is missing from it.
        await table.put(itemNamed("a", { leaseSecs: 60 }));
        await table.delete(skNamed("b"));
        await watch.for("a list that says it is old", ({ list }) => list?.complete === false);
        for (const { list } of watch.samples.slice(brokenFrom)) {
          expect(names(list)).toEqual(["b", "c", "d", "e"]);
        }
        proxy.mend();
        await watch.for("a list as the table is", ({ list }) =>
          Boolean(list?.complete && names(list)?.join() === "a,c,d,e"),
        );
        await table.delete(skNamed("a"));
        await table.put(itemNamed("b", { leaseSecs: 60 }));
        await watch.for("the list as it was", ({ list }) => names(list)?.join() === "b,c,d,e");
      }
    });
  });
}
