import { expect, test } from "bun:test";
import { type Emulator, PATIENT_MS, startReplica } from "../../support/dynamodb.ts";
import { type Fault, FaultProxy, fail, hang, refuse } from "../../support/fault-proxy.ts";
import { faultsOf, scrape } from "../../support/metrics.ts";
import { itemNamed, poolNamed } from "../../support/pool-items.ts";
import { post, register } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

const PARTS = { table: true, slices: false };

/** What makes an operation end with each result. */
const FAULTS: Readonly<Record<string, Fault>> = {
  throttled: refuse(400, "ProvisionedThroughputExceededException"),
  timeout: hang,
  denied: refuse(400, "AccessDeniedException"),
  error: fail(500),
};

/** What `GET /metrics` tells of the table. */
export function metricsTests(command: readonly string[], emulator: () => Emulator): void {
  test.concurrent("metrics tell of the table: reads, writes, items, and those that can't be decoded", async () => {
    const table = await emulator().createTable();
    await using service = await startReplica(table, { command, lease: 60, poll: 1 });
    const { url } = service;
    await register(url, poolNamed("one"));
    await register(url, poolNamed("two"));
    await table.put(itemNamed("three", { leaseSecs: 60 }));
    await table.put(itemNamed("broken", { leaseSecs: 60, body: "no registration" }));
    const now = await until(
      "the items",
      async () => {
        const now = await scrape(url);
        return now.value("gds_table_items") === 4 ? now : undefined;
      },
      PATIENT_MS,
    );
    expect(faultsOf(now, PARTS)).toEqual([]);
    expect(now.sum("gds_build_info", { mode: "registrations", store: "dynamodb" })).toBe(1);
    expect(now.value("gds_table_undecodable_items")).toBe(1);
    expect(now.value('gds_pools{state="registered"}')).toBe(3);
    expect(now.value('gds_registrations_total{result="added"}')).toBe(2);
    expect(now.value('gds_table_writes_total{result="ok"}')).toBe(2);
    expect(now.sum("gds_table_writes_total")).toBe(2);
    expect(now.value("gds_table_write_duration_seconds_count")).toBe(2);
    const reads = now.value('gds_table_reads_total{result="ok"}');
    expect(reads).toBeGreaterThanOrEqual(1);
    expect(now.value("gds_table_read_duration_seconds_count")).toBe(reads);
    const readAtSecs = now.value("gds_table_last_read_timestamp_seconds");
    expect(Math.abs(Date.now() / 1000 - readAtSecs)).toBeLessThan(PATIENT_MS / 1000);
    await until("a later read", async () => {
      const later = (await scrape(url)).value("gds_table_last_read_timestamp_seconds");
      return later > readAtSecs ? true : undefined;
    });
  });

  for (const [result, fault] of Object.entries(FAULTS)) {
    test.concurrent(`reads and writes that end as ${result} are counted as that`, async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      await using service = await startReplica(table, {
        command,
        endpoint: proxy.url,
        // A write has 6 s: the SDK tries one that is throttled three times, which takes 2.
        heartbeat: 12,
        lease: 13,
      });
      const { url } = service;
      const failed = async (name: string) =>
        (await scrape(url)).value(`gds_table_${name}_total{result="${result}"}`);
      await register(url, poolNamed("one"));
      // Until it has read the table, what is denied ends it.
      await until("the first read", async () => (await fetch(`${url}/pools`)).ok || undefined);
      expect(await failed("reads")).toBe(0);
      proxy.break(fault, "Query", "UpdateItem");
      expect((await post(url, poolNamed("one"))).status).toBe(503);
      expect(await failed("writes")).toBe(1);
      expect((await scrape(url)).value('gds_registrations_total{result="failed"}')).toBe(1);
      await until(
        "a failed read",
        async () => ((await failed("reads")) > 0 ? true : undefined),
        PATIENT_MS,
      );
      proxy.mend();
    });
  }
}
