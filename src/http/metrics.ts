import type { Directory } from "../directory/directory.ts";
import type { DirectoryFacts, SliceFacts } from "../directory/facts.ts";
import type { ListWaiters } from "../directory/waiters.ts";
import type { TableFacts } from "../registrations/store.ts";
import { processFacts } from "../runtime/process-facts.ts";
import type { RunClock } from "../runtime/run-clock.ts";
import { Exposition, type Labels } from "./exposition.ts";
import type { RequestCounts } from "./request-counts.ts";

export interface MetricSources {
  readonly build: { readonly version: string; readonly mode: string; readonly store: string };
  readonly directory: Pick<Directory, "facts">;
  readonly requests: RequestCounts;
  readonly waiters: Readonly<Record<"pools" | "routers", Pick<ListWaiters, "count">>>;
  readonly runClock: RunClock;
}

/**
 * All metrics as of now, as Prometheus reads them. Parts that this mode and this store don't have
 * have none.
 */
export function metricsText(sources: MetricSources): string {
  const { build, directory, requests, waiters, runClock } = sources;
  const out = new Exposition();
  const facts = directory.facts();
  out.gauge("gds_build_info", "What is running; always 1.", [[{ ...build }, 1]]);
  writePools(out, facts);
  writeRegistrations(out, facts, requests);
  writeRequests(out, requests);
  out.gauge("gds_waiters", "Requests that wait for a list to change.", [
    [{ route: "/pools" }, waiters.pools.count],
    [{ route: "/routers" }, waiters.routers.count],
  ]);
  writePauses(out, runClock);
  if (facts.table !== null) writeTable(out, facts.table);
  if (facts.slices !== null) writeSlices(out, facts.slices);
  writeProcess(out);
  return out.toString();
}

function writePools(out: Exposition, { pools, incompleteReasons }: DirectoryFacts): void {
  out.gauge("gds_pools", "Pools with a live registration, and those of them in the list.", [
    [{ state: "listed" }, pools.listed],
    [{ state: "registered" }, pools.registered],
  ]);
  out.gauge(
    "gds_complete",
    "Whether the list surely holds every live pool.",
    incompleteReasons.length === 0 ? 1 : 0,
  );
}

/** The statuses with which a registration is refused before a store has seen it. */
const BAD_INPUT = [400, 413, 415];

function writeRegistrations(
  out: Exposition,
  { registrations }: DirectoryFacts,
  requests: RequestCounts,
): void {
  const { added, renewed, changed, refused, failed } = registrations;
  const posts = requests.statuses("/pools", "POST");
  const invalid = BAD_INPUT.reduce((sum, status) => sum + (posts.get(status) ?? 0), 0);
  out.counter(
    "gds_registrations_total",
    "Registrations by result: of a new pool, the same as before, one that differs, refused as " +
      "invalid or for want of room, not taken by the table.",
    by("result", { added, renewed, changed, refused: refused + invalid, failed }),
  );
  out.counter("gds_expirations_total", "Pools whose lease has ended.", registrations.expired);
  out.counter(
    "gds_disagreements_total",
    "Registrations that differed from the live one of the same pool.",
    registrations.disagreements,
  );
}

function writeRequests(out: Exposition, requests: RequestCounts): void {
  const series = requests.series();
  out.counter(
    "gds_http_requests_total",
    "Requests that were answered.",
    series.flatMap(({ route, method, statuses }) =>
      Array.from(statuses, ([status, count]) => {
        return [{ route, method, status: String(status) }, count] as const;
      }),
    ),
  );
  out.histogram(
    "gds_http_request_duration_seconds",
    "Time from the headers of a request to its answer; requests that wait for a change left out.",
    series.map(({ route, method, duration }) => [{ route, method }, duration]),
  );
}

function writePauses(out: Exposition, runClock: RunClock): void {
  const pausedMs = runClock.pausedMs();
  out.counter("gds_pauses_total", "Times that the process could not run.", runClock.pauses);
  out.counter(
    "gds_paused_seconds_total",
    "Time in which the process could not run.",
    pausedMs / 1000,
  );
}

function writeTable(out: Exposition, { reads, writes, lastRead, undecodable }: TableFacts): void {
  out.counter("gds_table_reads_total", "Reads of the whole table.", by("result", reads.results));
  out.histogram(
    "gds_table_read_duration_seconds",
    "Time of a read of the whole table, failed ones included.",
    reads.duration,
  );
  out.counter(
    "gds_table_writes_total",
    "Registrations that were to be written to the table.",
    by("result", writes.results),
  );
  out.histogram(
    "gds_table_write_duration_seconds",
    "Time to write a registration to the table, with all retries, failed ones included.",
    writes.duration,
  );
  out.gauge(
    "gds_table_last_read_timestamp_seconds",
    "When the last successful read of the table began; 0 before the first.",
    (lastRead?.beganAtWallMs ?? 0) / 1000,
  );
  out.gauge("gds_table_items", "Items that the last read has found.", lastRead?.items ?? 0);
  out.gauge(
    "gds_table_undecodable_items",
    "Items that can't be decoded and may be of live pools.",
    undecodable,
  );
}

function writeSlices(out: Exposition, { used, leftOut, isSynced, watch }: SliceFacts): void {
  const leftOutCounts = Object.entries(leftOut).map(([reason, { count }]) => [reason, count]);
  out.gauge(
    "gds_slices",
    "EndpointSlices that are used, and those that are left out, by the reason.",
    by("use", { used, ...Object.fromEntries(leftOutCounts) }),
  );
  out.gauge(
    "gds_watch_synced",
    "Whether all EndpointSlices have been read at least once.",
    isSynced ? 1 : 0,
  );
  out.gauge(
    "gds_watch_last_event_timestamp_seconds",
    "When the API server last sent a list, an event or a bookmark; 0 before the first.",
    (watch.heardAtWallMs ?? 0) / 1000,
  );
  out.counter(
    "gds_watch_restarts_total",
    "Times that a watch, or the list before it, has ended and was begun again.",
    by("reason", watch.restarts),
  );
}

function writeProcess(out: Exposition): void {
  const { cpuSecs, residentBytes, startedAtSecs } = processFacts();
  out.counter(
    "process_cpu_seconds_total",
    "Total user and system CPU time spent in seconds.",
    cpuSecs,
  );
  out.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", residentBytes);
  out.gauge(
    "process_start_time_seconds",
    "Start time of the process since unix epoch in seconds.",
    startedAtSecs,
  );
}

/** One value for each name, with the name as the value of `label`. */
function by(
  label: string,
  counts: Readonly<Record<string, number>>,
): (readonly [Labels, number])[] {
  return Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
}
