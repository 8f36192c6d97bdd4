import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DirectoryFacts } from "../../src/directory/facts.ts";
import { metricsText } from "../../src/http/metrics.ts";
import { RequestCounts } from "../../src/http/request-counts.ts";
import { refusal } from "../../src/http/respond.ts";
import { Operations } from "../../src/registrations/dynamodb/operations.ts";
import { TableError } from "../../src/registrations/dynamodb/table.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { makeFacts, unwatched } from "../support/facts.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeAnswer } from "../support/make-answer.ts";
import { faultsOf, METRICS, Scrape } from "../support/metrics.ts";
import { hasPromtool, promtool } from "../support/promtool.ts";
import { projectRoot } from "../support/service.ts";

const noServer = { timeout() {} };
const NONE = { count: 0, names: [] };

function setUp(overrides: Partial<DirectoryFacts> = {}) {
  const clock = new FakeClock();
  const requests = new RequestCounts(clock);
  const runClock = new RunClock(clock, () => {});
  const build = { version: "1.2.3", mode: "mcs", store: "dynamodb" };
  const waiters = { pools: { count: 0 }, routers: { count: 0 } };
  const directory = { facts: () => makeFacts(overrides) };
  const text = () => metricsText({ build, directory, waiters, requests, runClock });
  return { clock, requests, runClock, waiters, text, scrape: () => new Scrape(text()) };
}

function tableFacts(clock: FakeClock) {
  const [reads, writes] = [new Operations(clock), new Operations(clock)];
  return { lastRead: null, undecodable: 0, lastError: null, reads, writes };
}

const slices = {
  used: 0,
  leftOut: {
    "not-imported": NONE,
    "other-namespace": NONE,
    "unknown-cluster": NONE,
    fqdn: NONE,
    "other-service": NONE,
  },
  isSynced: false,
  isCurrent: false,
  watch: unwatched,
};

for (const table of [false, true]) {
  for (const hasSlices of [false, true]) {
    const parts = { table, slices: hasSlices };
    const name = `${table ? "a table" : "no table"} and ${hasSlices ? "slices" : "no slices"}`;
    const facts = {
      ...(table ? { table: tableFacts(new FakeClock()) } : {}),
      ...(hasSlices ? { slices } : {}),
    };

    test(`with ${name}, every metric of these parts is told from the start, and no other`, () => {
      const { requests, scrape } = setUp(facts);
      requests.counted(
        "/pools",
        () => makeAnswer(),
        () => makeAnswer(),
      );
      expect(faultsOf(scrape(), parts)).toEqual([]);
    });

    test.skipIf(!hasPromtool("the form of the metrics"))(
      `with ${name}, promtool has nothing to say against the metrics`,
      () => {
        const { requests, text } = setUp(facts);
        requests.counted(
          "/pools",
          () => makeAnswer(),
          () => makeAnswer(),
        );
        expect(promtool(["check", "metrics"], text())).toBe("");
      },
    );
  }
}

test("docs/reference.md has each metric with its type and its labels", () => {
  const text = readFileSync(join(projectRoot, "docs/reference.md"), "utf8");
  const documented = new Map<string, string>();
  for (const [, names = "", rest = ""] of text.matchAll(
    /^\| (`(?:gds|process)_[^|]*) \|([^|]*\|[^|]*)\|/gm,
  )) {
    for (const [, name = ""] of names.matchAll(/`(\w+)`/g)) documented.set(name, rest.trim());
  }
  const rules = Object.entries(METRICS).map(([name, { type, labels = {} }]) => {
    return [
      name,
      `${type} | ${Object.keys(labels)
        .map((label) => `\`${label}\``)
        .join(", ")}`.trim(),
    ];
  });
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(rules));
});

test("the build, the pools and whether the list is complete are gauges of the moment", () => {
  const { scrape } = setUp({
    pools: { listed: 2, registered: 3 },
    incompleteReasons: ["one"],
  });
  const { samples } = scrape();
  expect(samples.get('gds_build_info{version="1.2.3",mode="mcs",store="dynamodb"}')).toBe(1);
  expect(samples.get('gds_pools{state="listed"}')).toBe(2);
  expect(samples.get('gds_pools{state="registered"}')).toBe(3);
  expect(samples.get("gds_complete")).toBe(0);
  expect(setUp().scrape().samples.get("gds_complete")).toBe(1);
});

test("a registration that is refused before the store sees it is one that is refused", async () => {
  const registrations = {
    added: 1,
    renewed: 2,
    changed: 3,
    refused: 4,
    failed: 5,
    expired: 6,
    disagreements: 7,
  };
  const { scrape, requests } = setUp({ registrations });
  for (const status of [400, 413, 415, 200, 503, 405]) {
    const handler = requests.counted(
      "/pools",
      () => refusal(status, "no"),
      () => makeAnswer(),
    );
    await handler(new Request("http://x/", { method: "POST" }), noServer);
  }
  const of = (result: string) => scrape().value(`gds_registrations_total{result="${result}"}`);
  expect(["added", "renewed", "changed", "refused", "failed"].map(of)).toEqual([1, 2, 3, 7, 5]);
  expect(scrape().value("gds_expirations_total")).toBe(6);
  expect(scrape().value("gds_disagreements_total")).toBe(7);
});

test("waiters are a gauge for each list", () => {
  const { scrape, waiters } = setUp();
  waiters.pools.count = 2;
  waiters.routers.count = 3;
  expect(scrape().value('gds_waiters{route="/pools"}')).toBe(2);
  expect(scrape().value('gds_waiters{route="/routers"}')).toBe(3);
});

test("pauses are counted, and how long they were, up to the scrape", () => {
  const { clock, scrape } = setUp();
  clock.pause(1500);
  expect(scrape().value("gds_pauses_total")).toBe(1);
  expect(scrape().value("gds_paused_seconds_total")).toBe(1.5);
});

test("reads and writes of the table are counted by result and timed, the last read in wall time", async () => {
  const clock = new FakeClock();
  const facts = tableFacts(clock);
  const lastRead = {
    beganAtMs: 1,
    beganAtWallMs: 1_790_000_000_250,
    tookMs: 3,
    items: 7,
    pages: 2,
  };
  const { scrape } = setUp({ table: { ...facts, lastRead, undecodable: 4 } });
  await facts.reads.count(async () => clock.advance(2000));
  await facts.writes
    .count(async () => {
      clock.advance(30);
      throw new TableError("throttled", "slow down");
    })
    .catch(() => {});
  const value = (series: string) => scrape().value(series);
  expect(value('gds_table_reads_total{result="ok"}')).toBe(1);
  expect(value('gds_table_writes_total{result="throttled"}')).toBe(1);
  expect(value("gds_table_read_duration_seconds_sum")).toBe(2);
  expect(value("gds_table_read_duration_seconds_count")).toBe(1);
  expect(value("gds_table_write_duration_seconds_sum")).toBe(0.03);
  expect(value("gds_table_last_read_timestamp_seconds")).toBe(1_790_000_000.25);
  expect(value("gds_table_items")).toBe(7);
  expect(value("gds_table_undecodable_items")).toBe(4);
});

test("slices are counted by their use, and the watch by how it went", () => {
  const { scrape } = setUp({
    slices: {
      ...slices,
      used: 5,
      leftOut: { ...slices.leftOut, fqdn: { count: 2, names: ["a/b", "a/c"] } },
      isSynced: true,
      watch: {
        heardAtWallMs: 1_790_000_000_250,
        restarts: { end: 1, expired: 2, denied: 3, silent: 4, error: 5 },
      },
    },
  });
  const value = (series: string) => scrape().value(series);
  expect(value('gds_slices{use="used"}')).toBe(5);
  expect(value('gds_slices{use="fqdn"}')).toBe(2);
  expect(value("gds_watch_synced")).toBe(1);
  expect(value("gds_watch_last_event_timestamp_seconds")).toBe(1_790_000_000.25);
  const restarts = ["end", "expired", "denied", "silent", "error"];
  expect(restarts.map((reason) => value(`gds_watch_restarts_total{reason="${reason}"}`))).toEqual([
    1, 2, 3, 4, 5,
  ]);
});

test("the process has its CPU time, its memory and its start, as Prometheus defines them", () => {
  const { scrape } = setUp();
  const before = scrape();
  const startedAtMs = before.value("process_start_time_seconds") * 1000;
  expect(startedAtMs).toBeCloseTo(performance.timeOrigin, 0);
  expect(before.value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
  const burntUntilMs = performance.now() + 30;
  while (performance.now() < burntUntilMs);
  const burntSecs =
    scrape().value("process_cpu_seconds_total") - before.value("process_cpu_seconds_total");
  expect(burntSecs).toBeGreaterThan(0);
});
