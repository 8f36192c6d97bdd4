import { expect, test } from "bun:test";
import { join } from "node:path";
import { dynoxide, Emulator, PATIENT_MS, startReplica } from "../../support/dynamodb.ts";
import {
  commitThenHang,
  dribble,
  drop,
  type Fault,
  FaultProxy,
  fail,
  hang,
  onLaterPages,
  type ProxiedRequest,
  refuse,
} from "../../support/fault-proxy.ts";
import { itemNamed, OtherReplica, poolNamed } from "../../support/pool-items.ts";
import { expectOneLine } from "../../support/relay.ts";
import { freePort, type Service, temporaryFolder } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import {
  lists,
  names,
  type PostAnswer,
  pausesOf,
  Relays,
  registerSoon,
  type Sample,
  timedPost,
  Watch,
} from "../../support/watch.ts";

/** What may happen to a request, whatever it asks for. */
const FAULTS: Readonly<Record<string, Fault>> = {
  "never answers": hang,
  "drops the connection": drop,
  "dribbles its answer": dribble,
  "throttles by throughput": refuse(400, "ProvisionedThroughputExceededException"),
  "throttles by rate": refuse(400, "ThrottlingException"),
  "fails with status 500": refuse(500, "InternalServerError"),
  "fails with status 503": fail(503),
  "denies access": refuse(400, "AccessDeniedException"),
  "finds the token expired": refuse(400, "ExpiredTokenException"),
  "does not know the credentials": refuse(400, "UnrecognizedClientException"),
  "breaks off its answer": ({ send, drop }) => {
    send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"Count":');
    drop();
  },
};

async function healthOf(service: Service): Promise<number> {
  return (await fetch(`${service.url}/healthz`)).status;
}

/** Checks that a registration is refused for now, in words. */
function expectNotKept({ status, text, tookMs }: PostAnswer): void {
  expect(status, text).toBe(503);
  expectOneLine(text);
  expect(tookMs).toBeLessThan(6000);
}

/** What the service does while DynamoDB, or what is between, is out of order, and afterwards. */
export function faultTests(emulator: () => Emulator): void {
  const readFaults = { ...FAULTS, "drops each read after its first page": onLaterPages(drop) };
  for (const [what, fault] of Object.entries(readFaults)) {
    test.concurrent(`${what} for reads, the last list is served, complete for three polls, registrations work, and then all is as it was`, async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      proxy.pageSize = 1;
      const leaseSecs = 5;
      const leaseMs = leaseSecs * 1000;
      await using service = await startReplica(table, {
        endpoint: proxy.url,
        lease: leaseSecs,
        // A write has two seconds, so that none is late because the machine is busy.
        heartbeat: 4,
      });
      await using elsewhere = new OtherReplica(table, (renewedAtMs) =>
        itemNamed("elsewhere", { leaseSecs, renewedAtMs }),
      );
      await using relays = new Relays(service.url, [poolNamed("here")]);
      await using watch = new Watch(service.url, 100);
      const isWhole = ({ list }: Sample) =>
        Boolean(list?.complete && lists(list, "here") && lists(list, "elsewhere"));
      await watch.for("a complete list", isWhole, PATIENT_MS);

      // Between two reads, so that it is known which was the last that ended well.
      await until("a read to be over", () => {
        const sinceMs = Date.now() - (proxy.of("Query").at(-1)?.endedAtMs ?? Number.NaN);
        return (sinceMs > 150 && sinceMs < 500) || undefined;
      });
      const brokenFrom = watch.samples.length;
      const postedFrom = relays.answers.length;
      const pauses = pausesOf(service);
      const brokenAtMs = Date.now();
      const lastReadMs = proxy.reads().at(-1)?.startedAtMs ?? 0;
      proxy.break(fault, "Query");
      await watch.for("a list that may lack something", ({ list }) => list?.complete === false);
      expect(await healthOf(service)).toBe(200);
      // Nobody can tell this replica that it was renewed.
      await watch.for("the end of a lease", ({ list }) => !lists(list, "elsewhere"));
      await service.says(/the table can't be read; the last lists are served/);
      expect(await healthOf(service)).toBe(200);
      const broken = watch.samples.slice(brokenFrom);
      const brokenMs = Date.now() - brokenAtMs;
      const isDuring = ({ startedAtMs }: ProxiedRequest) =>
        startedAtMs >= brokenAtMs && startedAtMs <= brokenAtMs + brokenMs;
      const calls = proxy.reads().filter(isDuring);
      const attempts = proxy.of("Query").filter(isDuring);
      const posted = relays.answers.slice(postedFrom);

      proxy.mend();
      await watch.for("a complete list again", isWhole, PATIENT_MS);
      expect(await healthOf(service)).toBe(200);

      const lastRenewalMs =
        elsewhere.renewals.findLast(({ writtenAtMs }) => writtenAtMs < lastReadMs)?.renewedAtMs ??
        0;
      expect(broken.length).toBeGreaterThan(5);
      for (const { sentAtMs, answeredAtMs, list, status } of broken) {
        const when = `${sentAtMs - lastReadMs} ms after the last read began`;
        expect(status).toBe(200);
        expect(lists(list, "here"), when).toBe(true);
        if (answeredAtMs <= lastRenewalMs + leaseMs) {
          expect(lists(list, "elsewhere"), when).toBe(true);
        }
        if (sentAtMs > lastReadMs + 3000) expect(list?.complete, when).toBe(false);
        // The service began the read a little before the proxy saw it.
        if (answeredAtMs < lastReadMs + 2500 && pausesOf(service) === pauses) {
          expect(list?.complete, when).toBe(true);
        }
      }
      // No storm: a read at most once a poll interval, and of each a few attempts of the SDK, some
      // of which its HTTP client sends twice where a connection that it had kept is gone.
      expect(calls.length).toBeGreaterThan(0);
      expect(calls.length).toBeLessThanOrEqual(brokenMs / 900 + 1);
      expect(attempts.length).toBeLessThanOrEqual(7 * calls.length);
      expect(posted.length).toBeGreaterThan(2);
      for (const { status, text } of posted) expect(status, text).toBe(200);
      expect(service.stderr).not.toContain("pool=aws-west/dynamo/here fields");
      expect(service.stderr.match(/the last lists are served/g)).toHaveLength(1);
      // What was given up is let go of, too.
      await until(
        "the end of all requests",
        () => attempts.every(({ endedAtMs }) => endedAtMs !== undefined) || undefined,
      );
    });
  }

  const writeFaults = { ...FAULTS, "keeps what is written but never answers": commitThenHang };
  const committing: readonly Fault[] = [dribble, commitThenHang];
  for (const [what, fault] of Object.entries(writeFaults)) {
    test.concurrent(`${what} for writes, a registration gets 503 with a reason in time, lists go on, and then all is as it was`, async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      await using service = await startReplica(table, {
        endpoint: proxy.url,
        lease: 3,
        heartbeat: 1,
      });
      await using _ = new OtherReplica(table, (renewedAtMs) =>
        itemNamed("elsewhere", { renewedAtMs }),
      );
      await using watch = new Watch(service.url, 100);
      {
        await using _ = new Relays(service.url, [poolNamed("here")]);
        await watch.for("a complete list", ({ list }) =>
          Boolean(list?.complete && lists(list, "here") && lists(list, "elsewhere")),
        );
      }

      const brokenFrom = watch.samples.length;
      const pauses = pausesOf(service);
      proxy.break(fault, "UpdateItem");
      const answers: PostAnswer[] = [];
      const postBoth = async () => {
        answers.push(
          ...(await Promise.all([
            timedPost(service.url, poolNamed("here")),
            timedPost(service.url, poolNamed("new")),
          ])),
        );
      };
      if (committing.includes(fault)) {
        // The table has it, whatever the relay was told.
        await until("the pool that was written", async () => {
          await postBoth();
          return names(watch.samples.at(-1)?.list)?.join() === "elsewhere,here,new"
            ? true
            : undefined;
        });
      } else {
        await until("the end of a lease", async () => {
          await postBoth();
          return names(watch.samples.at(-1)?.list)?.join() === "elsewhere" ? true : undefined;
        });
        // Nothing changes by a registration that was not kept.
        for (const { list } of watch.samples.slice(brokenFrom)) {
          expect(lists(list, "new")).toBe(false);
        }
      }
      for (const answer of answers) expectNotKept(answer);
      // Half the heartbeat interval, and what a machine that is busy takes at its best.
      expect(Math.min(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(1500);
      expect(await healthOf(service)).toBe(200);
      for (const { list, status } of watch.samples.slice(brokenFrom)) {
        expect(status).toBe(200);
        expect(lists(list, "elsewhere")).toBe(true);
        if (pausesOf(service) === pauses) expect(list?.complete).toBe(true);
      }

      proxy.mend();
      await using __ = new Relays(service.url, [poolNamed("here"), poolNamed("new")]);
      await watch.for(
        "all pools again",
        ({ list }) => Boolean(list?.complete && names(list)?.join() === "elsewhere,here,new"),
        PATIENT_MS,
      );
      expect(service.stderr).not.toContain("differs");
    });
  }

  for (const how of ["is gone", "hangs"] as const) {
    test.concurrent(`${how} altogether, leases end, lists say that they may lack something, and nothing is lost in the end`, async () => {
      using folder = temporaryFolder();
      const at = { port: await freePort(), dbPath: join(folder.path, "table.db") };
      const first = await Emulator.start(dynoxide, at);
      const table = await first.createTable();
      await using service = await startReplica(table, { lease: 4, heartbeat: 2 });
      await using watch = new Watch(service.url, 100);
      for (const name of ["a", "b"]) {
        await table.put(itemNamed(name, { leaseSecs: 600 }));
      }
      const isWhole = ({ list }: Sample) =>
        Boolean(list?.complete && names(list)?.join() === "a,b,here");
      await using relays = new Relays(service.url, [poolNamed("here")]);
      await watch.for("a complete list", isWhole);

      if (how === "is gone") await first[Symbol.asyncDispose]();
      else first.kill("SIGSTOP");
      await watch.for("the end of the lease that nobody could renew", ({ list }) =>
        Boolean(!list?.complete && names(list)?.join() === "a,b"),
      );
      expect(await healthOf(service)).toBe(200);
      const last = relays.answers.at(-1);
      if (last === undefined) throw new Error("no relay was answered");
      expectNotKept(last);

      if (how === "hangs") first.kill("SIGCONT");
      await using _ = how === "hangs" ? first : await Emulator.start(dynoxide, at);
      await watch.for("a complete list again", isWhole, PATIENT_MS);
      expect(await healthOf(service)).toBe(200);
      await until("a registration to be kept", () =>
        relays.answers.at(-1)?.status === 200 ? true : undefined,
      );
      await registerSoon(service.url, poolNamed("later"));
    });
  }

  for (const type of ["ThrottlingException", "ProvisionedThroughputExceededException"]) {
    test.concurrent(`throttles reads by ${type}, they grow apart up to four poll intervals, and no further`, async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      await using _ = await startReplica(table, { endpoint: proxy.url, lease: 10 });
      await until("the first reads", () => (proxy.reads().length > 2 ? true : undefined));
      const throttledAtMs = Date.now();
      proxy.break(refuse(400, type), "Query");
      const throttled = (requests: readonly ProxiedRequest[]) =>
        requests.filter(({ startedAtMs }) => startedAtMs > throttledAtMs);
      await until(
        "four reads",
        () => throttled(proxy.reads()).length >= 4 || undefined,
        PATIENT_MS,
      );
      const calls = throttled(proxy.reads());
      const gaps = gapsMs(calls);
      // 2, 4 and 4 seconds apart, each spread by a tenth.
      const [first = 0, second = 0, third = 0] = gaps;
      expect(first, String(gaps)).toBeGreaterThan(1600);
      expect(second, String(gaps)).toBeGreaterThan(3200);
      expect(third, String(gaps)).toBeGreaterThan(3200);
      // No eight.
      expect(third, String(gaps)).toBeLessThan(6800);
      // Each of them is a few attempts of the SDK.
      expect(throttled(proxy.of("Query")).length).toBeLessThanOrEqual(4 * calls.length);
      proxy.mend();
      const mended = proxy.reads().length;
      await until("more reads", () => proxy.reads().length >= mended + 5 || undefined);
      // One interval apart again.
      expect(Math.min(...gapsMs(proxy.reads().slice(mended)))).toBeLessThan(1500);
    });
  }
}

/** How long after the one before it each request began. */
function gapsMs(requests: readonly ProxiedRequest[]): number[] {
  return requests
    .slice(1)
    .map(({ startedAtMs }, index) => startedAtMs - (requests[index]?.startedAtMs ?? 0));
}
