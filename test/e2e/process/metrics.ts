import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { faultsOf, Scrape, scrape } from "../../support/metrics.ts";
import { hasPromtool, promtool } from "../../support/promtool.ts";
import { exchange } from "../../support/raw-http.ts";
import { post, postText, register, registration } from "../../support/relay.ts";
import { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const LEASE_SECS = 2;
const DEADLINE_MS = 60_000;
const PARTS = { table: false, slices: false };

export function metricsTests(command: readonly string[]): void {
  const start = (leaseSecs = 3600) =>
    Service.start(command, {
      args: ["--heartbeat-interval-secs", "1", "--lease-duration-secs", String(leaseSecs)],
    });

  test.concurrent(
    "GET /metrics tells every metric of this mode and this store, from the first scrape on",
    async () => {
      await using service = await start();
      const response = await fetch(`${service.url}/metrics`);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
      const text = await response.text();
      const first = new Scrape(text);
      expect(faultsOf(first, PARTS)).toEqual([]);
      const build = { mode: "registrations", store: "memory" };
      expect(first.sum("gds_build_info", build)).toBe(1);
      expect(first.value("gds_complete")).toBe(0);
      const head = await fetch(`${service.url}/metrics`, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
      if (hasPromtool("the form of what is scraped")) {
        expect(promtool(["check", "metrics"], text)).toBe("");
      }
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "registrations, pools, expirations and disagreements are counted",
    async () => {
      await using service = await start(LEASE_SECS);
      const { url } = service;
      const [one, two] = [registration(), registration()];
      await register(url, one);
      await register(url, one);
      await register(url, two);
      await register(url, { ...two, model: "another" });
      const refusals = [
        await post(url, { ...one, model: "" }),
        await postText(url, "x".repeat(300_000)),
        await postText(url, JSON.stringify(one), { "Content-Type": "text/plain" }),
      ];
      expect(refusals.map(({ status }) => status)).toEqual([400, 413, 415]);
      const now = await scrape(url);
      const results = ["added", "renewed", "changed", "refused", "failed"];
      const counts = results.map((result) => now.sum("gds_registrations_total", { result }));
      // A machine that stood still for a lease has lost a pool in between.
      if (now.value("gds_expirations_total") === 0) {
        expect(counts).toEqual([2, 1, 1, 3, 0]);
        expect(now.value('gds_pools{state="registered"}')).toBe(2);
        expect(now.value('gds_pools{state="listed"}')).toBe(2);
        expect(now.value("gds_disagreements_total")).toBe(1);
      }
      const later = await until("both pools to expire", async () => {
        const later = await scrape(url);
        return later.value("gds_expirations_total") === 2 ? later : undefined;
      });
      expect(later.sum("gds_pools")).toBe(0);
      await until("a complete list", async () => {
        return (await scrape(url)).value("gds_complete") === 1 ? true : undefined;
      });
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "requests are counted by route, method and status, and timed",
    async () => {
      await using service = await start();
      const { url } = service;
      const ask = async (path: string, method = "GET", headers: Record<string, string> = {}) =>
        await (await fetch(url + path, { method, headers })).arrayBuffer();
      const before = await scrape(url);
      const etag = (await fetch(`${url}/pools`)).headers.get("etag") ?? "";
      await ask("/pools?query", "GET", { "If-None-Match": etag });
      await ask("/pools", "HEAD");
      await ask("/pools", "PUT");
      await ask("/routers");
      await ask("/routers/");
      await ask("/nothing", "DELETE");
      await ask("/healthz");
      await register(url, registration());
      const after = await scrape(url);
      const grown = new Map<string, number>();
      for (const [series, value] of after.samples) {
        const growth = value - before.value(series);
        if (series.startsWith("gds_http_requests_total{") && growth !== 0)
          grown.set(series, growth);
      }
      const series = (route: string, method: string, status: number) =>
        `gds_http_requests_total{route="${route}",method="${method}",status="${status}"}`;
      expect(Object.fromEntries(grown)).toEqual({
        [series("/pools", "GET", 200)]: 1,
        [series("/pools", "GET", 304)]: 1,
        [series("/pools", "HEAD", 200)]: 1,
        [series("/pools", "PUT", 405)]: 1,
        [series("/pools", "POST", 200)]: 1,
        [series("/routers", "GET", 200)]: 1,
        [series("/healthz", "GET", 200)]: 1,
        [series("other", "GET", 404)]: 1,
        [series("other", "DELETE", 404)]: 1,
        [series("/metrics", "GET", 200)]: 1,
      });
      const timed = (labels: Record<string, string>) =>
        after.sum("gds_http_request_duration_seconds_count", labels);
      expect(timed({ route: "/pools", method: "GET" })).toBe(2);
      expect(timed({ route: "/pools", method: "POST" })).toBe(1);
      expect(timed({ route: "other" })).toBe(2);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "requests that wait are counted while they do, and their time is left out",
    async () => {
      await using service = await start();
      const { url } = service;
      await register(url, registration());
      const etag = (await fetch(`${url}/pools`)).headers.get("etag") ?? "";
      const abort = new AbortController();
      const waiting = [1, 2].map(() => {
        const headers = { "If-None-Match": etag, Prefer: "wait=60" };
        return fetch(`${url}/pools`, { headers, signal: abort.signal }).catch(() => undefined);
      });
      const waiters = async () => (await scrape(url)).value('gds_waiters{route="/pools"}');
      await until("two waiters", async () => ((await waiters()) === 2 ? true : undefined));
      expect((await scrape(url)).value('gds_waiters{route="/routers"}')).toBe(0);
      await register(url, registration());
      await Promise.all(waiting);
      await until("no waiter", async () => ((await waiters()) === 0 ? true : undefined));
      const { sum } = await scrape(url).then((now) => ({
        sum: (name: string) => now.sum(name, { route: "/pools", method: "GET" }),
      }));
      expect(sum("gds_http_requests_total")).toBe(3);
      expect(sum("gds_http_request_duration_seconds_count")).toBe(1);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "no label is taken from what clients send: a flood of odd requests adds no series",
    async () => {
      await using service = await start();
      const { url } = service;
      const odd = async (n: number) => {
        const methods = ["GET", "PROPFIND", "PURGE", "REPORT", "TRACE", "PUT", "OPTIONS", "MKCOL"];
        const method = methods[n % methods.length];
        const path = n % 3 === 0 ? "/pools" : `/odd-${n}"%0a{le="x"}`;
        await exchange(
          url,
          `${method} ${path}?${n} HTTP/1.1\r\nHost: odd-${n}\r\nX-${n}: 1\r\n\r\n`,
        );
        await post(url, registration({ model: `odd-${n}` }));
      };
      for (let n = 0; n < 48; n += 1) await odd(n);
      const before = await scrape(url);
      for (let n = 48; n < 480; n += 1) await odd(n);
      const after = await scrape(url);
      expect([...after.samples.keys()]).toEqual([...before.samples.keys()]);
      expect(faultsOf(after, PARTS)).toEqual([]);
      expect(after.sum("gds_http_requests_total", { method: "other" })).toBeGreaterThan(100);
      expect(after.value('gds_pools{state="listed"}')).toBe(480);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "pauses of the process are counted, and summed",
    async () => {
      await using service = await start();
      // It beats from the start on, and a pause is what comes between two beats.
      await Bun.sleep(500);
      const before = await scrape(service.url);
      service.kill("SIGSTOP");
      await Bun.sleep(2000);
      service.kill("SIGCONT");
      const after = await scrape(service.url);
      const growth = (name: string) => after.value(name) - before.value(name);
      expect(growth("gds_pauses_total")).toBeGreaterThanOrEqual(1);
      expect(growth("gds_paused_seconds_total")).toBeGreaterThanOrEqual(1.7);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "the process metrics are what the system says of the process",
    async () => {
      await using service = await start();
      const now = await scrape(service.url);
      const stat = readFileSync(`/proc/${service.pid}/stat`, "utf8");
      // Fields are counted from behind the name; times are in hundredths of a second.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const field = (at: number) => Number(fields[at]);
      const bootedAtSecs = Number(/^btime (\d+)$/m.exec(readFileSync("/proc/stat", "utf8"))?.[1]);
      const startedAtSecs = bootedAtSecs + field(19) / 100;
      const told = now.value("process_start_time_seconds");
      // When the system was booted is in whole seconds.
      expect(Math.abs(told - startedAtSecs)).toBeLessThan(3);
      const cpuSecs = (field(11) + field(12)) / 100;
      expect(now.value("process_cpu_seconds_total")).toBeGreaterThan(0);
      expect(now.value("process_cpu_seconds_total")).toBeLessThanOrEqual(cpuSecs + 0.1);
      const residentBytes = field(21) * 4096;
      const toldBytes = now.value("process_resident_memory_bytes");
      expect(Math.abs(toldBytes - residentBytes)).toBeLessThan(0.3 * residentBytes);
      expect((await scrape(service.url)).value("process_start_time_seconds")).toBe(told);
    },
    DEADLINE_MS,
  );
}
