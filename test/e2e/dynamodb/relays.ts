import { expect, test } from "bun:test";
import { type Emulator, startReplica } from "../../support/dynamodb.ts";
import { delayed, FaultProxy, Hold } from "../../support/fault-proxy.ts";
import { poolNamed, skNamed } from "../../support/pool-items.ts";
import { poolList } from "../../support/relay.ts";
import type { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { lists, registerSoon, timedPost, Watch } from "../../support/watch.ts";

const PROBE = poolNamed("probe");

function warnings(service: Service): string[] {
  return service.lines.filter((line) => / WARN +registrations: .*differs/.test(line));
}

/** What relays of one pool do to each other through two replicas. */
export function relayTests(emulator: () => Emulator): void {
  /** Two replicas of one table; what the second reads and writes goes through the proxy. */
  const setUp = async ({ isFresh }: { readonly isFresh: boolean }) => {
    const table = await emulator().createTable();
    const proxy = await FaultProxy.start(table.endpoint);
    const one = await startReplica(table, { lease: 60, heartbeat: 4 });
    // What it hears of the table, when it does, is as of before all that the test does.
    const firstRead = new Hold();
    if (isFresh) proxy.break(firstRead.fault, "Query");
    const two = await startReplica(table, { lease: 60, heartbeat: 4, endpoint: proxy.url });
    return {
      table,
      proxy,
      one,
      two,
      letRead() {
        firstRead.letGo();
        proxy.mend();
      },
      /** Waits until a replica has read what is in the table now. */
      async untilRead(service: Service, by: Service) {
        await registerSoon(by.url, PROBE);
        await using watch = new Watch(service.url);
        await watch.for("what was written", ({ list }) => lists(list, "probe"));
        await table.delete(skNamed("probe"));
        await watch.for("what was deleted", ({ list }) => !lists(list, "probe"));
      },
      async [Symbol.asyncDispose]() {
        await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
        proxy[Symbol.dispose]();
      },
    };
  };

  for (const isFresh of [false, true]) {
    const which = isFresh ? "one that has not read the table yet" : "one that knows the pool";

    test.concurrent(`and disagree are warned of at once where they meet, ${which}`, async () => {
      await using given = await setUp({ isFresh });
      const { one, two } = given;
      await registerSoon(one.url, poolNamed("a"));
      await registerSoon(one.url, poolNamed("b"));
      if (!isFresh) await given.untilRead(two, one);

      const changed = poolNamed("a", {
        model: "another",
        capabilities: ["aggregated", "disaggregated"],
        location: { region: "us-west-2", availability_zone: "us-west-2b" },
      });
      // Long before the next minute, and without a read in between.
      const answers = [];
      for (const body of [changed, poolNamed("b"), changed]) {
        answers.push((await timedPost(two.url, body)).status);
      }
      expect(answers).toEqual([200, 200, 200]);
      await until("a warning", () => warnings(two).length > 0 || undefined, 5000);
      expect(warnings(two)).toHaveLength(1);
      expect(warnings(two)[0]).toContain("pool=aws-west/dynamo/a ");
      expect(warnings(two)[0]).toMatch(
        / fields="?location\.availability_zone,model,capabilities"? /,
      );
      expect(warnings(two)[0]).toContain("count=1");

      // The last one wins, on every replica.
      given.letRead();
      await given.untilRead(one, two);
      for (const service of [one, two]) {
        await using watch = new Watch(service.url);
        await watch.for("the last registration", ({ list }) =>
          Boolean(list?.pools.find(({ key }) => key.dgd_name === "a")?.model === "another"),
        );
      }
      // And the other relay's next heartbeat shows it on its replica too.
      await registerSoon(one.url, poolNamed("a"));
      await until("a warning", () => warnings(one).length > 0 || undefined, 5000);
      expect(warnings(one)[0]).toContain("pool=aws-west/dynamo/a ");
    });

    test.concurrent(`and send their lists in another order change neither the table's text nor any list, ${which}`, async () => {
      await using given = await setUp({ isFresh });
      const { table, one, two } = given;
      const lists = (isTurned: boolean) => {
        const turned = <T>(list: readonly T[]) => (isTurned ? list.toReversed() : list);
        return poolNamed("a", {
          capabilities: turned(["prefill", "decode", "prefill", "aggregated"]),
          frontends: turned(["http://10.0.0.1/", "http://10.0.0.2:8000/", "https://b.example/"]),
          capacity: turned([
            { sku: "H100", workers: 8 },
            { sku: "A100", workers: 4 },
            { sku: "H100", workers: 4 },
          ]),
        });
      };
      await registerSoon(one.url, lists(false));
      const before = await table.get(skNamed("a"));
      if (!isFresh) await given.untilRead(two, one);
      // Complete lists would differ from these only in saying so.
      await using watch = new Watch(one.url);
      await watch.for("the list", ({ status }) => status === 200);
      const from = watch.samples.length;

      for (let beat = 0; beat < 3; beat += 1) {
        await registerSoon(two.url, lists(true));
        const after = await table.get(skNamed("a"));
        expect(after?.registration).toEqual(before?.registration ?? { S: "" });
        expect(Number(after?.renewed_at?.N)).toBeGreaterThan(Number(before?.renewed_at?.N));
        expect(after).toEqual({
          ...before,
          renewed_at: after?.renewed_at ?? { N: "" },
          expires_at: after?.expires_at ?? { N: "" },
        });
      }
      given.letRead();
      await using other = new Watch(two.url);
      const { body, etag } = await other.for("the list", ({ status }) => status === 200);
      // Each has read the table some more.
      await given.untilRead(one, two);
      await given.untilRead(two, one);
      const seen = [...watch.samples.slice(from), ...other.samples];
      const pool = poolList(body).pools[0];
      for (const { list } of seen) {
        if (list !== undefined) expect(list.pools[0]).toEqual(pool);
      }
      // The probes were in some of them.
      const alone = seen.filter(({ list }) => list?.pools.length === 1);
      expect(alone.length).toBeGreaterThan(2);
      for (const each of alone) {
        expect(each.body).toBe(body);
        expect(each.etag).toBe(etag);
      }
      expect([...warnings(one), ...warnings(two)]).toEqual([]);
    });
  }

  test.concurrent("and send their lists in another order change no list for a moment either, whatever the second replica writes", async () => {
    await using given = await setUp({ isFresh: true });
    const { one, two, proxy } = given;
    const inOrder = (...capabilities: readonly string[]) => poolNamed("a", { capabilities });
    await registerSoon(one.url, inOrder("prefill", "decode"));
    await using watch = new Watch(one.url);
    const before = await watch.for("the list", ({ list }) => lists(list, "a"));
    // If one request is not enough, the first replica has the time to read what it did so far.
    let writes = 0;
    proxy.break((exchange) => {
      writes += 1;
      return delayed(writes === 1 ? 0 : 1500)(exchange);
    }, "UpdateItem");
    const { status, text } = await timedPost(two.url, inOrder("decode", "prefill"));
    expect(status, text).toBe(200);
    await Bun.sleep(1500);
    const seen = watch.samples.filter(({ list }) => lists(list, "a"));
    expect(seen.length).toBeGreaterThan(5);
    for (const { body } of seen) expect(body).toBe(before.body);
  });
}
