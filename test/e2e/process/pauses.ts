import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { RawConnection } from "../../support/raw-http.ts";
import {
  getList,
  getPool,
  getPools,
  type PoolList,
  poolList,
  register,
  registration,
} from "../../support/relay.ts";
import { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const LEASE_MS = 3000;
const DEADLINE_MS = 90_000;
const GET = "GET /pools HTTP/1.1\r\nHost: x\r\n\r\n";

export function pauseTests(command: readonly string[]): void {
  const start = (leaseMs = LEASE_MS) =>
    Service.start(command, {
      args: ["--heartbeat-interval-secs", "1", "--lease-duration-secs", String(leaseMs / 1000)],
    });

  /** Stops the process, as a frozen machine does, and waits until it stands still. */
  const freeze = async (service: Service) => {
    service.kill("SIGSTOP");
    await until("the process to stand still", () =>
      / T /.test(readFileSync(`/proc/${service.pid}/stat`, "utf8")) ? true : undefined,
    );
  };

  /** A service with a complete list of pools that have just registered. */
  const registered = async (service: Service, bodies: ReturnType<typeof registration>[]) => {
    await until("a complete list", async () => {
      for (const body of bodies) await register(service.url, body);
      const { complete, pools } = await getPools(service.url);
      return complete && pools.length === bodies.length ? true : undefined;
    });
  };

  for (const isQueued of [true, false]) {
    const when = isQueued ? "a request waits for it" : "none does";
    test.concurrent(
      `after a stop of three leases every list has every pool and is not complete, where ${when}`,
      async () => {
        await using service = await start();
        const bodies = Array.from({ length: 20 }, () => registration());
        using open = await RawConnection.open(service.url);
        open.send(GET);
        await open.response();
        await registered(service, bodies);

        await freeze(service);
        await Bun.sleep(1000);
        const waiting = [open, await RawConnection.open(service.url)];
        if (isQueued) for (const connection of waiting) connection.send(GET);
        await Bun.sleep(3 * LEASE_MS - 1000);
        const wokenAtMs = performance.now();
        service.kill("SIGCONT");

        const expectAll = (list: PoolList, what: string) => {
          expect(list.pools.map(({ key }) => key.cluster_id).sort(), what).toEqual(
            bodies.map(({ key }) => key.cluster_id).sort(),
          );
        };
        for (const connection of waiting) {
          if (!isQueued) connection.send(GET);
          const list = poolList((await connection.response()).body.toString());
          expectAll(list, "the first list");
          expect(list.complete).toBe(false);
        }
        waiting[1]?.[Symbol.dispose]();
        const completeAtMs = await until("a complete list", async () => {
          for (const body of bodies) await register(service.url, body);
          const list = await getPools(service.url);
          expectAll(list, "a later list");
          return list.complete ? performance.now() : undefined;
        });
        expect(completeAtMs - wokenAtMs).toBeGreaterThanOrEqual(LEASE_MS);
        expect(service.stderr).not.toContain("expired");
        expect(service.lines.some((line) => /WARN.*not running/.test(line))).toBe(true);
      },
      DEADLINE_MS,
    );
  }

  test.concurrent(
    "a heartbeat that waits for the end of a stop is kept, and so is everyone else's pool",
    async () => {
      await using service = await start();
      const [waiting, other] = [registration(), registration()];
      await registered(service, [waiting, other]);
      await freeze(service);
      const beat = register(service.url, waiting);
      await Bun.sleep(3 * LEASE_MS);
      service.kill("SIGCONT");
      await beat;
      const list = await getPools(service.url);
      expect(list.pools).toHaveLength(2);
      expect(list.complete).toBe(false);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a lease goes on after a stop with what was left of it, and then ends",
    async () => {
      await using service = await start();
      const body = registration();
      await registered(service, [body]);
      const frozenAfter = performance.now();
      await register(service.url, body);
      await freeze(service);
      const ranMs = performance.now() - frozenAfter;
      await Bun.sleep(2 * LEASE_MS);
      const wokenAtMs = performance.now();
      service.kill("SIGCONT");
      const goneAtMs = await until("the pool to leave", async () =>
        (await getPool(service.url, body.key)) === undefined ? performance.now() : undefined,
      );
      expect(goneAtMs - wokenAtMs).toBeGreaterThanOrEqual(LEASE_MS - ranMs);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a stop that starts before the list is complete puts that off",
    async () => {
      // Long enough for the first list to come within it on a busy machine.
      const leaseMs = 3 * LEASE_MS;
      await using service = await start(leaseMs);
      expect((await getList(service.url)).body).toContain('"complete":false');
      await freeze(service);
      await Bun.sleep(leaseMs);
      const wokenAtMs = performance.now();
      service.kill("SIGCONT");
      const completeAtMs = await until("a complete list", async () =>
        (await getPools(service.url)).complete ? performance.now() : undefined,
      );
      expect(completeAtMs - wokenAtMs).toBeGreaterThanOrEqual(leaseMs);
    },
    DEADLINE_MS,
  );
}
