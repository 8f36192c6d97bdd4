import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { YAML } from "bun";
import { limits } from "../../src/runtime/limits.ts";
import { METRICS } from "../support/metrics.ts";
import { hasPromtool, promtool, promtoolOn } from "../support/promtool.ts";
import { projectRoot } from "../support/service.ts";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly type: string;
  readonly id: number;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: {
    readonly h: number;
    readonly w: number;
    readonly x: number;
    readonly y: number;
  };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

const alertsPath = join(projectRoot, "deploy/monitoring/alerts.yaml");
// What is no rule file fails in the tests below.
const alertFile = YAML.parse(readFileSync(alertsPath, "utf8")) as {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
};
const alerts = alertFile.groups.flatMap(({ rules }) => rules);
const dashboardPath = join(projectRoot, "deploy/monitoring/dashboard.json");
// What is no dashboard fails in the tests below.
const dashboard = JSON.parse(readFileSync(dashboardPath, "utf8")) as {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly definition?: string }[];
  };
};
const targets = dashboard.panels.flatMap(({ targets = [] }) => targets);
/** As Grafana fills them in. */
const panelExprs = targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "5m"));

/** Labels that Prometheus adds to whatever it scrapes. */
const SCRAPED = ["job", "instance"];

/** The metric of a series' name, a histogram's parts included. */
function metricOf(name: string): string {
  return METRICS[name] === undefined ? name.replace(/_(bucket|sum|count)$/, "") : name;
}

/** The metrics that an expression asks for. */
function metricsIn(expr: string): string[] {
  const outsideOfLabels = expr.replaceAll(/\{[^}]*\}/g, "");
  return [...outsideOfLabels.matchAll(/\b(?:gds|process)_\w+/g)].map(([name]) => name);
}

/** What an expression asks for that the service does not tell. */
function strangersIn(expr: string): string[] {
  const strangers: string[] = [];
  const labels = new Set([...SCRAPED, "le"]);
  for (const name of metricsIn(expr)) {
    const metric = METRICS[metricOf(name)];
    const isPart = metricOf(name) !== name;
    if (metric === undefined || (metric.type === "histogram") !== isPart) strangers.push(name);
    for (const label of Object.keys(metric?.labels ?? {})) labels.add(label);
  }
  for (const [, name = "", matchers = ""] of expr.matchAll(/(\w+)\{([^}]*)\}/g)) {
    const rules = METRICS[metricOf(name)]?.labels ?? {};
    for (const [, label = "", , value = ""] of matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
      if (SCRAPED.includes(label)) continue;
      const rule = rules[label] ?? [];
      for (const each of value.split("|")) {
        const isTold = rule instanceof RegExp ? rule.test(each) : rule.includes(each);
        if (!isTold) strangers.push(`${name}{${label}="${each}"}`);
      }
    }
  }
  for (const [, names = ""] of expr.matchAll(/\b(?:by|without|on|ignoring) \(([^)]*)\)/g)) {
    for (const label of names.split(", ")) if (!labels.has(label)) strangers.push(label);
  }
  return strangers;
}

describe("the alerts", () => {
  test.each(alerts)("$alert asks only for what the service tells", ({ expr }) => {
    expect(metricsIn(expr).length).toBeGreaterThan(0);
    expect(strangersIn(expr)).toEqual([]);
  });

  test.each(alerts)(
    "$alert says what is the case, how bad it is, and where to read on",
    (alert) => {
      expect(alert.alert).toStartWith("GlobalDiscovery");
      expect(["critical", "warning"]).toContain(alert.labels.severity);
      expect(Object.keys(alert.annotations).sort()).toEqual(["description", "runbook", "summary"]);
      expect(alert.annotations.runbook).toBe(`docs/operations.md#${alert.alert.toLowerCase()}`);
    },
  );

  test("have names of their own", () => {
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  });

  test("are due at four fifths of the limits", () => {
    const exprOf = (name: string) => alerts.find(({ alert }) => alert === name)?.expr;
    expect(exprOf("GlobalDiscoveryNearPoolLimit")).toEndWith(` > ${0.8 * limits.livePools}`);
    expect(exprOf("GlobalDiscoveryNearWaiterLimit")).toEndWith(` > ${0.8 * limits.waiters}`);
  });
});

/** What Prometheus has scraped, each minute: series, and their values in its notation for tests. */
type Series = Readonly<Record<string, string>>;

const BUILD_INFO = 'gds_build_info{version="0.1.0",mode="mcs",store="dynamodb"}';

const HEALTHY: Series = {
  [BUILD_INFO]: "1x120",
  'gds_pools{state="listed"}': "100x120",
  'gds_pools{state="registered"}': "100x120",
  gds_complete: "1x120",
  'gds_registrations_total{result="added"}': "100x120",
  'gds_registrations_total{result="renewed"}': "0+1200x120",
  'gds_registrations_total{result="changed"}': "1x120",
  'gds_registrations_total{result="refused"}': "1x120",
  'gds_registrations_total{result="failed"}': "3x120",
  gds_disagreements_total: "1x120",
  'gds_http_requests_total{route="/pools",method="GET",status="200"}': "0+60x120",
  'gds_http_requests_total{route="/pools",method="GET",status="500"}': "1x120",
  'gds_waiters{route="/pools"}': "10x120",
  'gds_waiters{route="/routers"}': "10x120",
  gds_pauses_total: "2x120",
  'gds_table_reads_total{result="ok"}': "0+30x120",
  'gds_table_reads_total{result="throttled"}': "0+1x120",
  gds_table_last_read_timestamp_seconds: "0+60x120",
  gds_table_undecodable_items: "0x120",
  'gds_slices{use="used"}': "200x120",
  'gds_slices{use="unknown-cluster"}': "0x120",
  'gds_slices{use="fqdn"}': "0x120",
  'gds_slices{use="other-service"}': "50x120",
  gds_watch_last_event_timestamp_seconds: "0+60x120",
  'gds_watch_restarts_total{reason="end"}': "0+0.25x120",
  'gds_watch_restarts_total{reason="denied"}': "3x120",
  'gds_watch_restarts_total{reason="error"}': "5x120",
  process_start_time_seconds: "0x120",
};

interface Case {
  /** In place of what is healthy, from the start: what is to raise the alert. */
  readonly bad: Series;
  /** The same, a little less bad. */
  readonly tolerable: Series;
}

const CASES: Readonly<Record<string, Case>> = {
  GlobalDiscoveryPoolsLost: {
    bad: {
      'gds_pools{state="listed"}': "100x52 49x68",
      'gds_pools{state="registered"}': "100x52 49x68",
    },
    tolerable: {
      'gds_pools{state="listed"}': "100x52 51x68",
      'gds_pools{state="registered"}': "100x52 51x68",
    },
  },
  GlobalDiscoveryTableUnread: {
    bad: { gds_table_last_read_timestamp_seconds: "0+60x56 3360x64" },
    tolerable: { gds_table_last_read_timestamp_seconds: "0 0+60x119" },
  },
  GlobalDiscoveryListIncomplete: {
    bad: { gds_complete: "1x50 0x70" },
    tolerable: { gds_complete: "1x55 0x4 1x61" },
  },
  GlobalDiscoveryPoolsNotListed: {
    bad: { 'gds_pools{state="registered"}': "100x40 101x80" },
    tolerable: { 'gds_pools{state="registered"}': "100x46 101x14 100x60" },
  },
  GlobalDiscoveryRegistrationsFailing: {
    bad: { 'gds_registrations_total{result="failed"}': "0+64x120" },
    tolerable: { 'gds_registrations_total{result="failed"}': "0+60x120" },
  },
  GlobalDiscoveryRegistrationsRefused: {
    bad: { 'gds_registrations_total{result="refused"}': "0+1x120" },
    tolerable: { 'gds_registrations_total{result="refused"}': "0x48 1x72" },
  },
  GlobalDiscoveryRelaysDisagree: {
    bad: { gds_disagreements_total: "0+1x120" },
    tolerable: { gds_disagreements_total: "0x48 1x72" },
  },
  GlobalDiscoveryNearPoolLimit: {
    bad: { 'gds_pools{state="listed"}': "80001x120", 'gds_pools{state="registered"}': "80001x120" },
    tolerable: {
      'gds_pools{state="listed"}': "80000x120",
      'gds_pools{state="registered"}': "80000x120",
    },
  },
  GlobalDiscoveryNearWaiterLimit: {
    bad: { 'gds_waiters{route="/pools"}': "7991x120" },
    tolerable: { 'gds_waiters{route="/pools"}': "7990x120" },
  },
  GlobalDiscoveryTableReadsFailing: {
    bad: { 'gds_table_reads_total{result="throttled"}': "0+8x120" },
    tolerable: { 'gds_table_reads_total{result="throttled"}': "0+7x120" },
  },
  GlobalDiscoveryUndecodableItems: {
    bad: { gds_table_undecodable_items: "0x48 1x72" },
    tolerable: { gds_table_undecodable_items: "0x52 1x7 0x60" },
  },
  GlobalDiscoveryWatchSilent: {
    bad: { gds_watch_last_event_timestamp_seconds: "0+60x52 3120x68" },
    tolerable: { gds_watch_last_event_timestamp_seconds: "0+60x54 3240x66" },
  },
  GlobalDiscoveryWatchDenied: {
    bad: { 'gds_watch_restarts_total{reason="denied"}': "0+2x120" },
    tolerable: { 'gds_watch_restarts_total{reason="denied"}': "0x50 3x70" },
  },
  GlobalDiscoveryWatchRestarting: {
    bad: { 'gds_watch_restarts_total{reason="error"}': "0+1x120" },
    tolerable: { 'gds_watch_restarts_total{reason="error"}': "0+0.6x120" },
  },
  GlobalDiscoverySlicesLeftOut: {
    bad: { 'gds_slices{use="fqdn"}': "0x40 1x80" },
    tolerable: { 'gds_slices{use="fqdn"}': "0x47 1x13 0x60" },
  },
  GlobalDiscoveryPaused: {
    bad: { gds_pauses_total: "0x40 1 2 3x78" },
    tolerable: { gds_pauses_total: "0x40 1x80" },
  },
  GlobalDiscoveryRestarting: {
    bad: { process_start_time_seconds: "0x30 1x10 2x10 3x70" },
    tolerable: { process_start_time_seconds: "0x30 1x10 2x80" },
  },
  GlobalDiscoveryFault: {
    bad: { 'gds_http_requests_total{route="/pools",method="GET",status="500"}': "1x55 2x65" },
    tolerable: { 'gds_http_requests_total{route="/pools",method="GET",status="500"}': "1x120" },
  },
};

/** A series with the labels that Prometheus adds. */
function scrapedFrom(instance: string, series: string): string {
  const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
  return `${name}{job="discovery",instance="${instance}",${labels}}`;
}

/** An hour of scrapes of some replicas, each with what is not healthy, and what is to be firing then. */
function hourOf(replicas: Readonly<Record<string, Series>>, firing: readonly string[]) {
  return {
    interval: "1m",
    input_series: Object.entries(replicas).flatMap(([instance, changes]) =>
      Object.entries({ ...HEALTHY, ...changes }).map(([series, values]) => ({
        series: scrapedFrom(instance, series),
        values,
      })),
    ),
    promql_expr_test: [
      {
        expr: 'count by (alertname, instance) (ALERTS{alertstate="firing"})',
        eval_time: "60m",
        exp_samples: firing.map((labels) => ({ labels, value: 1 })),
      },
    ],
  };
}

describe.skipIf(!hasPromtool("what the alerts do"))("Prometheus", () => {
  test("takes the alerts", () => {
    expect(promtool(["check", "rules", alertsPath])).toBe("");
  });

  test("raises each alert when it is due, no other then, and none that is not due", () => {
    const names = alerts.map(({ alert }) => alert);
    expect(["GlobalDiscoveryAbsent", ...Object.keys(CASES)].sort()).toEqual(names.sort());
    const replicas: Record<string, Series> = { healthy: {} };
    const firing: string[] = [];
    for (const [alert, { bad, tolerable }] of Object.entries(CASES)) {
      replicas[`${alert}, bad`] = bad;
      replicas[`${alert}, tolerable`] = tolerable;
      firing.push(`{alertname="${alert}",instance="${alert}, bad"}`);
    }
    const gone = (at: number) => ({ [BUILD_INFO]: `1x${at - 1} stale _x5` });
    const tests = [
      hourOf(replicas, firing),
      hourOf({ one: gone(55) }, ['{alertname="GlobalDiscoveryAbsent"}']),
      hourOf({ one: gone(56) }, []),
      hourOf({ one: gone(55), two: {} }, []),
    ];
    const file = { rule_files: [alertsPath], evaluation_interval: "1m", tests };
    expect(promtoolOn(JSON.stringify(file), ["test", "rules"])).toBe("");
  });

  test("understands what the dashboard asks for", () => {
    const rules = panelExprs.map((expr, index) => ({ record: `panel:${index}`, expr }));
    const file = { groups: [{ name: "dashboard", rules }] };
    expect(promtoolOn(JSON.stringify(file), ["check", "rules"])).toBe("");
  });
});

describe("the dashboard", () => {
  test("asks only for what the service tells", () => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { expr } of targets) {
      expect(metricsIn(expr), expr).not.toEqual([]);
      expect(strangersIn(expr), expr).toEqual([]);
    }
  });

  test("shows every metric", () => {
    const shown = new Set(panelExprs.flatMap(metricsIn).map(metricOf));
    expect([...shown].sort()).toEqual(Object.keys(METRICS).sort());
  });

  test("lets the data source, the job and the replicas be chosen", () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
    const { list } = dashboard.templating;
    expect(list.map(({ name }) => name)).toEqual(["datasource", "job", "instance"]);
    for (const { definition } of list) {
      if (definition !== undefined) expect(strangersIn(definition)).toEqual([]);
    }
    for (const { expr } of targets) {
      for (const [, matchers = ""] of expr.matchAll(/\{([^}]*)\}/g)) {
        expect(matchers).toStartWith('job=~"$job",instance=~"$instance"');
      }
    }
  });

  test("has panels that say what they show, beside each other", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { type, title, description, gridPos, targets = [] } of panels) {
      expect(title).not.toBe("");
      if (type !== "row") expect(description, title).toEndWith(".");
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });
});
