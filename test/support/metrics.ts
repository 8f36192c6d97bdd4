/** What a metric is to be: its type, its labels, and their values where those are few. */
interface MetricRule {
  readonly type: "gauge" | "counter" | "histogram";
  readonly labels?: Readonly<Record<string, readonly string[] | RegExp>>;
  /** Where it is told; everywhere, where that is left out. */
  readonly only?: "table" | "slices";
}

const ROUTE = /^(\/|\/pools|\/routers|\/healthz|\/metrics|\/explain|other)$/;
const METHOD = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|other)$/;
const RESULT = ["ok", "throttled", "timeout", "denied", "error"];

/** Every metric that the service tells. */
export const METRICS: Readonly<Record<string, MetricRule>> = {
  gds_build_info: {
    type: "gauge",
    labels: {
      version: /^\d+\.\d+\.\d+$/,
      mode: /^(registrations|karmada|mcs)$/,
      store: /^(memory|dynamodb)$/,
    },
  },
  gds_pools: { type: "gauge", labels: { state: ["listed", "registered"] } },
  gds_complete: { type: "gauge" },
  gds_registrations_total: {
    type: "counter",
    labels: { result: ["added", "renewed", "changed", "refused", "failed"] },
  },
  gds_expirations_total: { type: "counter" },
  gds_disagreements_total: { type: "counter" },
  gds_http_requests_total: {
    type: "counter",
    labels: { route: ROUTE, method: METHOD, status: /^[2-5]\d\d$/ },
  },
  gds_http_request_duration_seconds: {
    type: "histogram",
    labels: { route: ROUTE, method: METHOD },
  },
  gds_waiters: { type: "gauge", labels: { route: ["/pools", "/routers"] } },
  gds_pauses_total: { type: "counter" },
  gds_paused_seconds_total: { type: "counter" },
  gds_table_reads_total: { type: "counter", labels: { result: RESULT }, only: "table" },
  gds_table_writes_total: { type: "counter", labels: { result: RESULT }, only: "table" },
  gds_table_read_duration_seconds: { type: "histogram", only: "table" },
  gds_table_write_duration_seconds: { type: "histogram", only: "table" },
  gds_table_last_read_timestamp_seconds: { type: "gauge", only: "table" },
  gds_table_items: { type: "gauge", only: "table" },
  gds_table_undecodable_items: { type: "gauge", only: "table" },
  gds_slices: {
    type: "gauge",
    labels: {
      use: ["used", "not-imported", "other-namespace", "unknown-cluster", "fqdn", "other-service"],
    },
    only: "slices",
  },
  gds_watch_synced: { type: "gauge", only: "slices" },
  gds_watch_last_event_timestamp_seconds: { type: "gauge", only: "slices" },
  gds_watch_restarts_total: {
    type: "counter",
    labels: { reason: ["end", "expired", "error", "silent", "denied"] },
    only: "slices",
  },
  process_cpu_seconds_total: { type: "counter" },
  process_resident_memory_bytes: { type: "gauge" },
  process_start_time_seconds: { type: "gauge" },
};

/** Metrics as a scrape reads them. */
export class Scrape {
  readonly types = new Map<string, string>();
  readonly helps = new Map<string, string>();
  /** Each series as it is written, with its labels. */
  readonly samples = new Map<string, number>();

  /** @throws Error where it is not the text format 0.0.4, or a series comes twice */
  constructor(text: string) {
    if (!text.endsWith("\n")) throw new Error("the last line does not end");
    for (const line of text.slice(0, -1).split("\n")) {
      const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line) ?? [];
      if (keyword === "HELP") this.helps.set(name, rest);
      else if (keyword === "TYPE") this.types.set(name, rest);
      else this.#addSample(line);
    }
  }

  /** The value of a series, 0 where it has none. */
  value(series: string): number {
    return this.samples.get(series) ?? 0;
  }

  /** The sum of a metric over all series with these labels. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    let sum = 0;
    for (const [series, value] of this.samples) {
      if (series.split("{", 1)[0] !== name) continue;
      const has = labelsOf(series);
      if (Object.entries(labels).every(([label, text]) => has[label] === text)) sum += value;
    }
    return sum;
  }

  #addSample(line: string): void {
    const form = /^(\w+(?:\{\w+="[^"\\]*"(?:,\w+="[^"\\]*")*\})?) (\S+)$/;
    const [, series = "", value = ""] = form.exec(line) ?? [];
    if (series === "" || !Number.isFinite(Number(value))) throw new Error(`no sample: ${line}`);
    if (this.samples.has(series)) throw new Error(`a series comes twice: ${line}`);
    this.samples.set(series, Number(value));
  }
}

export function labelsOf(series: string): Readonly<Record<string, string>> {
  const pairs = [...series.matchAll(/(\w+)="([^"]*)"/g)];
  return Object.fromEntries(pairs.map(([, label = "", value = ""]) => [label, value]));
}

/** What a service tells now. */
export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`);
  if (response.status !== 200) throw new Error(`GET /metrics answered ${response.status}`);
  return new Scrape(await response.text());
}

/** The metrics that are to be told with these parts. */
export function metricsWith(parts: {
  readonly table: boolean;
  readonly slices: boolean;
}): string[] {
  return Object.entries(METRICS)
    .filter(([, { only }]) => only === undefined || parts[only])
    .map(([name]) => name);
}

/** What is wrong with a scrape of a service that has these parts; nothing, where it is right. */
export function faultsOf(
  { types, helps, samples }: Scrape,
  parts: { readonly table: boolean; readonly slices: boolean },
): string[] {
  const faults: string[] = [];
  const expected = metricsWith(parts);
  for (const name of types.keys()) if (!expected.includes(name)) faults.push(`${name} is told`);
  const seen = new Map<string, Set<string>>();
  for (const series of samples.keys()) {
    const [sample = ""] = series.split("{", 1);
    const name = METRICS[sample] ? sample : sample.replace(/_(bucket|sum|count)$/, "");
    const { type, labels = {} } = METRICS[name] ?? {};
    if (type === undefined || (type === "histogram") === (name === sample)) {
      faults.push(`${series} is of no metric`);
      continue;
    }
    const { le, ...has } = labelsOf(series);
    if ((le !== undefined) !== sample.endsWith("_bucket")) faults.push(`${series}: le`);
    if (Object.keys(has).sort().join() !== Object.keys(labels).sort().join()) {
      faults.push(`${series}: labels are to be ${Object.keys(labels)}`);
    }
    for (const [label, value] of Object.entries(has)) {
      const rule = labels[label] ?? [];
      const isRight = rule instanceof RegExp ? rule.test(value) : rule.includes(value);
      if (!isRight) faults.push(`${series}: ${label}`);
      seen.set(`${name} ${label}`, (seen.get(`${name} ${label}`) ?? new Set()).add(value));
    }
    seen.set(name, seen.get(name) ?? new Set());
  }
  for (const name of expected) {
    const { type, labels = {} } = METRICS[name] ?? {};
    if (types.get(name) !== type) faults.push(`${name} is a ${types.get(name)}`);
    if (!helps.has(name)) faults.push(`${name} has no HELP`);
    if (!seen.has(name)) faults.push(`${name} has no series`);
    for (const [label, rule] of Object.entries(labels)) {
      if (rule instanceof RegExp) continue;
      for (const value of rule) {
        if (!seen.get(`${name} ${label}`)?.has(value)) faults.push(`${name}: no ${label}=${value}`);
      }
    }
  }
  return faults;
}
