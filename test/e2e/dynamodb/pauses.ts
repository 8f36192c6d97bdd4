import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  type Emulator,
  PATIENT_MS,
  type ReplicaOptions,
  startReplica,
} from "../../support/dynamodb.ts";
import { FaultProxy, Hold, onLaterPages } from "../../support/fault-proxy.ts";
import { itemNamed, OtherReplica, poolNamed } from "../../support/pool-items.ts";
import type { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { lists, names, Relays, sample, timedPost, Watch } from "../../support/watch.ts";

const LEASE_SECS = 3;
const LEASE_MS = LEASE_SECS * 1000;
const DEADLINE_MS = 120_000;
const NAMES = ["a", "b", "c", "d", "e"];

/** Stops a process, as a frozen machine does, and waits until it stands still. */
async function freeze(service: Service): Promise<void> {
  service.kill("SIGSTOP");
  await until("the process to stand still", () =>
    / T /.test(readFileSync(`/proc/${service.pid}/stat`, "utf8")) ? true : undefined,
  );
}

/** What a replica does that is stopped while another one goes on. */
export function pauseTests(command: readonly string[], emulator: () => Emulator): void {
  /** A replica that will be stopped, behind a proxy, and another with which all pools register. */
  const setUp = async (options: ReplicaOptions = {}) => {
    const table = await emulator().createTable();
    const proxy = await FaultProxy.start(table.endpoint);
    proxy.pageSize = 2;
    const shared = { command, lease: LEASE_SECS, ...options };
    const service = await startReplica(table, { ...shared, endpoint: proxy.url });
    const other = await startReplica(table, shared);
    const relays = new Relays(
      other.url,
      NAMES.map((name) => poolNamed(name)),
      400,
    );
    const watch = new Watch(service.url);
    await watch.for("a complete list of all", ({ list }) =>
      Boolean(list?.complete && Bun.deepEquals(names(list), NAMES)),
    );
    await watch[Symbol.asyncDispose]();
    return {
      table,
      proxy,
      service,
      async [Symbol.asyncDispose]() {
        await relays[Symbol.asyncDispose]();
        await Promise.all([service[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
        proxy[Symbol.dispose]();
      },
    };
  };

  /** Wakes it up, and checks what it lists from its first answer on until all is well again. */
  const expectNothingLost = async (service: Service, queued: ReturnType<typeof sample>[]) => {
    const wokenAtMs = Date.now();
    service.kill("SIGCONT");
    for (const answer of [...queued, sample(service.url)]) {
      const { list, body } = await answer;
      expect(names(list), body).toEqual(NAMES);
      expect(list?.complete).toBe(false);
    }
    await using watch = new Watch(service.url);
    const { answeredAtMs } = await watch.for(
      "a complete list",
      ({ list }) => list?.complete === true,
      PATIENT_MS,
    );
    expect(answeredAtMs - wokenAtMs).toBeGreaterThanOrEqual(LEASE_MS);
    for (const { list, body } of watch.samples) expect(names(list), body).toEqual(NAMES);
    expect(service.stderr).not.toContain("expired");
    expect(service.stderr).toMatch(/ WARN .*not running/);
  };

  for (const isQueued of [true, false]) {
    const when = isQueued ? "a request waits for it" : "none does";
    test.concurrent(
      `after a stop of three leases the first list has every pool and is not complete, where ${when}`,
      async () => {
        await using given = await setUp();
        const { service } = given;
        await freeze(service);
        await Bun.sleep(1000);
        const queued = isQueued ? [sample(service.url), sample(service.url)] : [];
        await Bun.sleep(3 * LEASE_MS - 1000);
        await expectNothingLost(service, queued);
      },
      DEADLINE_MS,
    );
  }

  for (const page of ["the first page", "a later page"] as const) {
    test.concurrent(
      `a stop in the middle of a Query, at ${page}, loses no pool either`,
      async () => {
        await using given = await setUp();
        const { service, proxy } = given;
        const hold = new Hold();
        proxy.break(page === "the first page" ? hold.fault : onLaterPages(hold.fault), "Query");
        await until("an answer to be held", () => (hold.held > 0 ? true : undefined));
        await freeze(service);
        await Bun.sleep(500);
        // It comes while nobody is there to take it, and is old when it is taken.
        hold.letGo();
        proxy.mend();
        await Bun.sleep(3 * LEASE_MS - 500);
        await expectNothingLost(service, [sample(service.url)]);
      },
      DEADLINE_MS,
    );
  }

  test.concurrent(
    "a stop in the middle of a Query that is over before the Query is late loses no pool either",
    async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      const leaseSecs = 6;
      await using service = await startReplica(table, {
        command,
        lease: leaseSecs,
        endpoint: proxy.url,
      });
      // Half its lease is over whenever it is read.
      await using _ = new OtherReplica(table, (nowMs) =>
        itemNamed("a", { leaseSecs, renewedAtMs: nowMs - 3000 }),
      );
      await using watch = new Watch(service.url);
      await watch.for("a complete list", ({ list }) => Boolean(list?.complete && lists(list, "a")));
      const hold = new Hold();
      proxy.break(hold.fault, "Query");
      await until("an answer to be held", () => hold.held > 0 || undefined);
      await freeze(service);
      hold.letGo();
      proxy.mend();
      await Bun.sleep(4500);
      service.kill("SIGCONT");
      const { list } = await sample(service.url);
      expect(names(list)).toEqual(["a"]);
      expect(list?.complete).toBe(false);
      await watch.for("a complete list", ({ list }) => list?.complete === true);
      for (const { list, status } of watch.samples) {
        if (status === 200) expect(names(list)).toEqual(["a"]);
      }
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a registration that a stop cuts in two is either refused or kept for its lease",
    async () => {
      await using given = await setUp({ heartbeat: 2 });
      const { service, proxy } = given;
      const hold = new Hold();
      proxy.break(hold.fault, "UpdateItem");
      const answer = timedPost(service.url, poolNamed("cut"));
      await until("the answer to be held", () => hold.held > 0 || undefined);
      await freeze(service);
      hold.letGo();
      proxy.mend();
      await Bun.sleep(2 * LEASE_MS);
      service.kill("SIGCONT");
      const { status, text } = await answer;
      const answeredAtMs = Date.now();
      await using watch = new Watch(service.url);
      if (status === 200) {
        while (Date.now() < answeredAtMs + LEASE_MS) {
          const { list, body } = await watch.for("a list", () => true);
          expect(lists(list, "cut"), body).toBe(true);
        }
      } else {
        expect(status, text).toBe(503);
      }
    },
    DEADLINE_MS,
  );
}
