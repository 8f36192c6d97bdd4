import { expect, test } from "bun:test";
import { explained } from "../../support/explained.ts";
import {
  find,
  getList,
  getPool,
  getPools,
  post,
  register,
  registration,
} from "../../support/relay.ts";
import { once, Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const LEASE_MS = 2000;
const DEADLINE_MS = 60_000;

export function leaseTests(command: readonly string[]): void {
  const start = () =>
    Service.start(command, {
      args: ["--heartbeat-interval-secs", "1", "--lease-duration-secs", String(LEASE_MS / 1000)],
    });
  const shared = once(start);

  test.concurrent(
    "a pool whose lease passes leaves the list, and never early",
    async () => {
      const service = await shared();
      const body = registration();
      for (let round = 0; round < 2; round += 1) {
        const sentAtMs = performance.now();
        await register(service.url, body);
        expect(await getPool(service.url, body.key)).toBeDefined();
        // The lease began after the request was sent, and had ended before the answer came.
        const gone = async () =>
          (await getPool(service.url, body.key)) === undefined ? performance.now() : undefined;
        const goneAtMs = await until("the pool to leave", gone);
        expect(goneAtMs - sentAtMs).toBeGreaterThanOrEqual(LEASE_MS);
      }
      const told = (what: string) => () => {
        const lines = service.lines.filter((line) => line.includes(body.key.cluster_id));
        return lines.filter((line) => line.includes(what)).length === 2 ? true : undefined;
      };
      await until("two lines of the log", told("pool added"));
      await until("two lines of the log", told("pool expired"));
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a pool whose lease passed is explained, until it is back",
    async () => {
      const service = await shared();
      const body = registration();
      const explain = async () => find((await explained(service.url)).pools, body.key);
      await register(service.url, body);
      expect(await explain()).toMatchObject({ listed: true, reasons: [] });
      const gone = await until("the pool to leave", async () => {
        const pool = await explain();
        return pool?.listed === false ? pool : undefined;
      });
      expect(gone.reasons).toEqual([expect.stringMatching(/^lease ended \d+ s ago$/)]);
      expect(gone.lease_left_s).toBe(0);
      // In whole milliseconds: in the first half of one after the end it is the lease itself.
      expect(gone.last_registered_s_ago).toBeGreaterThanOrEqual(LEASE_MS / 1000);
      await register(service.url, body);
      expect(await explain()).toMatchObject({ listed: true, reasons: [] });
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a pool leaves at the end of its lease, also where it registered again before",
    async () => {
      const service = await shared();
      const body = registration();
      await register(service.url, body);
      await Bun.sleep(LEASE_MS / 2);
      const sentAtMs = performance.now();
      await register(service.url, body);
      const goneAtMs = await until("the pool to leave", async () =>
        (await getPool(service.url, body.key)) === undefined ? performance.now() : undefined,
      );
      expect(goneAtMs - sentAtMs).toBeGreaterThanOrEqual(LEASE_MS);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a heartbeat keeps a pool in the list while one without leaves",
    async () => {
      const service = await shared();
      const [kept, left] = [registration(), registration()];
      await register(service.url, left);
      const startedAtMs = performance.now();
      while (performance.now() - startedAtMs < 3 * LEASE_MS) {
        const sentAtMs = performance.now();
        await register(service.url, kept);
        const { pools } = await getPools(service.url);
        // On a machine that stood still for a whole lease, the pool may be gone with good reason.
        const tookMs = performance.now() - sentAtMs;
        if (tookMs < LEASE_MS) expect(find(pools, kept.key)).toBeDefined();
        await Bun.sleep(100);
      }
      expect(await getPool(service.url, left.key)).toBeUndefined();
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a registration that is refused renews nothing",
    async () => {
      const service = await shared();
      const body = registration();
      await register(service.url, body);
      await until("the pool to leave", async () => {
        expect((await post(service.url, { ...body, model: "" })).status).toBe(400);
        return (await getPool(service.url, body.key)) === undefined ? true : undefined;
      });
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a list that may lack something says so: complete is false for one lease after the start",
    async () => {
      await using service = await start();
      const first = await getList(service.url);
      if (performance.now() - service.startedAtMs < LEASE_MS) {
        expect(first.body).toBe('{"pools":[],"complete":false}');
      }
      const complete = await until("a complete list", async () => {
        const list = await getList(service.url);
        return list.body.includes('"complete":true') ? list : undefined;
      });
      expect(performance.now() - service.startedAtMs).toBeGreaterThanOrEqual(LEASE_MS);
      expect(complete.body).toBe('{"pools":[],"complete":true}');
      expect(complete.etag).not.toBe(first.etag);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "the list after a pool has left is the one from before it came, ETag and all",
    async () => {
      await using service = await start();
      const empty = async () => {
        const list = await getList(service.url);
        return list.body === '{"pools":[],"complete":true}' ? list : undefined;
      };
      const before = await until("a complete list", empty);
      await register(service.url, registration());
      expect((await getList(service.url)).etag).not.toBe(before.etag);
      expect(await until("the pool to leave", empty)).toEqual(before);
    },
    DEADLINE_MS,
  );
}
