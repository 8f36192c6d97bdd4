import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { canMakeCertificates, makeCertificates } from "../../support/certificates.ts";
import { RawConnection } from "../../support/raw-http.ts";
import { register, registration } from "../../support/relay.ts";
import { forEachOf, once, Service, temporaryFolder } from "../../support/service.ts";
import { until, within } from "../../support/until.ts";
import { etagOf, waitBytes, waitFor } from "../../support/waiter.ts";

const DEADLINE_MS = 90_000;
/** What "at once" may take on a machine that is busy with other work. */
const PROMPT_MS = 5000;
const LEASE_MS = 2000;
const MOST_WAITERS = 10_000;
const LEASES = ["--lease-duration-secs", "86400"];

/** Long enough for a request to have arrived, and to be waiting. */
const settle = () => Bun.sleep(500);

/** Opens connections, each with a request on it, that this process hardly notices. */
async function openMany(url: string, count: number, bytes: string) {
  const sockets: Socket[] = [];
  const answers: string[] = [];
  let closed = 0;
  const { hostname, port } = new URL(url);
  await forEachOf([...Array(count).keys()], async () => {
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    socket.on("data", (chunk) => answers.push(chunk.toString("latin1")));
    socket.on("error", () => {});
    socket.on("close", () => {
      closed += 1;
    });
    await new Promise<void>((done) => socket.once("connect", done));
    socket.write(bytes);
  });
  return {
    answers,
    get closed() {
      return closed;
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Whether this process, and one that it starts, may have a file open for each waiter. */
function canOpenMany(): boolean {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const [, most = "0"] = /^Max open files +\d+ +(\d+|unlimited)/m.exec(limits) ?? [];
  if (most === "unlimited" || Number(most) >= MOST_WAITERS + 500) return true;
  console.log("skipped: the test of 10,000 waiters needs more open files (ulimit -Hn)");
  return false;
}

export function waitingTests(command: readonly string[]): void {
  const shared = once(() => Service.start(command, { args: LEASES }));
  const start = () => Service.start(command, { args: LEASES });
  const ofShared = async (path = "/routers") => `${(await shared()).url}${path}`;

  test.concurrent(
    "a wait longer than a silent connection may be is answered, and the connection kept as any other",
    async () => {
      const list = await ofShared();
      using connection = await RawConnection.open(list);
      const sentAtMs = performance.now();
      connection.send(waitBytes(await etagOf(list), 25).replace("/pools", "/routers"));
      const { status, headers } = await connection.response({ deadlineMs: 60_000 });
      const answeredAtMs = performance.now();
      expect(status).toBe(304);
      expect(headers.get("preference-applied")).toBe("wait=25");
      expect(answeredAtMs - sentAtMs).toBeGreaterThanOrEqual(25_000);
      const closedAtMs = await within(40_000, "the end of the connection", connection.closed);
      expect(closedAtMs - answeredAtMs).toBeGreaterThanOrEqual(10_000);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a waiter that is answered early leaves a connection like any other",
    async () => {
      await using service = await start();
      using connection = await RawConnection.open(service.url);
      connection.send(waitBytes(await etagOf(`${service.url}/pools`), 60));
      await settle();
      await register(service.url, registration());
      expect((await connection.response()).status).toBe(200);
      // Not after the 60 s of the wait.
      await within(25_000, "the end of the connection", connection.closed);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a waiter hears of a registration at once, in its own coding",
    async () => {
      await using service = await start();
      const list = `${service.url}/pools`;
      // The first one loads what parses it.
      await register(service.url, registration());
      const etag = await etagOf(list);
      const waiting = ["identity", "gzip", "zstd"].map((coding) =>
        waitFor(list, etag, 60, { headers: { "Accept-Encoding": coding } }),
      );
      await settle();
      const sentAtMs = performance.now();
      await register(service.url, registration({ model: "m".repeat(2000) }));
      const answers = await Promise.all(waiting);
      expect(performance.now() - sentAtMs).toBeLessThan(PROMPT_MS);
      const now = await (await fetch(list)).text();
      for (const { status, body, headers } of answers) {
        expect(status).toBe(200);
        expect(body).toBe(now);
        expect(headers.get("preference-applied")).toBe("wait=60");
      }
      const codings = answers.map(({ headers }) => headers.get("content-encoding"));
      expect(codings).toEqual([null, "gzip", "zstd"]);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a renewal is not told, and 304 comes when the time is up",
    async () => {
      await using service = await start();
      const list = `${service.url}/pools`;
      const body = registration();
      await register(service.url, body);
      const waiting = waitFor(list, await etagOf(list), 2);
      for (let beat = 0; beat < 3; beat += 1) {
        await Bun.sleep(400);
        await register(service.url, body);
      }
      const { status, afterMs, headers } = await waiting;
      expect(status).toBe(304);
      expect(afterMs).toBeGreaterThanOrEqual(1990);
      expect(headers.get("preference-applied")).toBe("wait=2");
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a waiter hears that a lease has ended, though nobody sends anything",
    async () => {
      const lease = ["--lease-duration-secs", `${LEASE_MS / 1000}`];
      await using service = await Service.start(command, {
        args: [...lease, "--heartbeat-interval-secs", "1"],
      });
      const list = `${service.url}/pools`;
      // By then the list is complete, which is a change as well.
      await Bun.sleep(LEASE_MS + 500);
      await register(service.url, registration());
      const { status, body, afterMs } = await waitFor(list, await etagOf(list), 60);
      expect(status).toBe(200);
      expect(body).toBe('{"pools":[],"complete":true}');
      expect(afterMs).toBeLessThan(LEASE_MS + PROMPT_MS);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "only a client that has a list waits for another",
    async () => {
      const list = await ofShared();
      const etag = await etagOf(list);
      const asked: [Record<string, string>, number, string | null][] = [
        [{ Prefer: "wait=60" }, 200, null],
        [{ Prefer: "wait=60", "If-None-Match": "*" }, 304, null],
        [{ Prefer: "wait=60", "If-None-Match": '"another"' }, 200, "wait=60"],
        [{ Prefer: "wait=99", "If-None-Match": '"another"' }, 200, "wait=60"],
        [{ Prefer: "wait=0", "If-None-Match": etag }, 304, "wait=0"],
        [{ Prefer: "wait=soon", "If-None-Match": etag }, 304, null],
        [{ Prefer: "wait=-1, wait=60", "If-None-Match": etag }, 304, null],
        [{ Prefer: 'foo="', "If-None-Match": etag }, 304, null],
      ];
      for (const [headers, status, applied] of asked) {
        const response = await fetch(list, { headers, signal: AbortSignal.timeout(30_000) });
        const label = JSON.stringify(headers);
        expect(response.status, label).toBe(status);
        expect(response.headers.get("preference-applied"), label).toBe(applied);
      }
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "Prefer may come in several lines, and HEAD waits as GET does",
    async () => {
      const list = await ofShared();
      const etag = await etagOf(list);
      using connection = await RawConnection.open(list);
      const sentAtMs = performance.now();
      connection.send(
        `HEAD /routers HTTP/1.1\r\nHost: x\r\nIf-None-Match: ${etag}\r\n` +
          'Prefer: respond-async; x="wait=9"\r\nPREFER: Wait = "1"; a=b, wait=9\r\n\r\n',
      );
      const { status, headers } = await connection.response({ bodiless: true });
      expect(status).toBe(304);
      expect(headers.get("preference-applied")).toBe("wait=1");
      expect(performance.now() - sentAtMs).toBeGreaterThanOrEqual(990);
    },
    DEADLINE_MS,
  );

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test.concurrent(
      `at ${signal} all waiters are answered, and it exits 0`,
      async () => {
        await using service = await start();
        const etag = await etagOf(`${service.url}/pools`);
        using waiters = await openMany(service.url, 300, waitBytes(etag, 60));
        await settle();
        expect(waiters.answers).toEqual([]);
        service.kill(signal);
        expect(await service.ended(PROMPT_MS)).toEqual({ status: 0, signal: null });
        await until("the last connection to end", () => waiters.closed === 300 || undefined);
        expect(waiters.answers).toHaveLength(300);
        for (const answer of waiters.answers) expect(answer).toStartWith("HTTP/1.1 304 ");
        expect(service.said).not.toContain("are cut");
      },
      DEADLINE_MS,
    );
  }

  test.skipIf(!canOpenMany()).concurrent(
    "10,000 clients may wait, one more is answered at once, and those who leave make room",
    async () => {
      await using service = await start();
      const list = `${service.url}/pools`;
      const etag = await etagOf(list);
      const isHeld = async () => {
        const { afterMs, headers } = await waitFor(list, etag, 1);
        const applied = headers.get("preference-applied");
        expect(applied).toBe(afterMs < 900 ? null : "wait=1");
        return applied !== null;
      };
      {
        using waiters = await openMany(service.url, MOST_WAITERS - 1, waitBytes(etag, 60));
        await until("all but one to wait", isHeld);
        using last = await RawConnection.open(service.url);
        last.send(waitBytes(etag, 60));
        await until("all of them to wait", async () => !(await isHeld()) || undefined);
        expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
        expect(waiters.answers).toEqual([]);
      }
      // They have gone without a word. What waits now takes all the room again.
      using again = await openMany(service.url, MOST_WAITERS - 1, waitBytes(etag, 60));
      await until("room for one more", async () => (await isHeld()) || undefined);
      expect(again.answers).toEqual([]);
      await register(service.url, registration());
      await until("all to be told", () => again.answers.length >= MOST_WAITERS - 1 || undefined);
      for (const answer of again.answers) expect(answer).toStartWith("HTTP/1.1 200 ");
    },
    DEADLINE_MS,
  );

  if (!canMakeCertificates("the test of waiting over TLS")) return;
  const folder = temporaryFolder();
  afterAll(() => folder[Symbol.dispose]());

  test.concurrent(
    "over TLS a waiter hears of a change, whether or not another has left",
    async () => {
      const { chain, key, root } = await makeCertificates(folder.path);
      const pair = ["--tls-cert-path", chain, "--tls-key-path", key];
      await using service = await Service.start(command, { args: [...LEASES, ...pair] });
      const tls = { ca: await Bun.file(root).text() };
      const list = `${service.url}/pools`;
      const etag = await etagOf(list, { tls });
      const leaving = new AbortController();
      const left = waitFor(list, etag, 60, { tls, signal: leaving.signal }).catch(() => "left");
      const waiting = waitFor(list, etag, 60, { tls });
      await settle();
      leaving.abort();
      expect(await left).toBe("left");
      const posted = await fetch(list, {
        tls,
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(registration()),
      });
      expect(posted.status).toBe(200);
      const { status, afterMs } = await waiting;
      expect(status).toBe(200);
      expect(afterMs).toBeLessThan(PROMPT_MS);
      expect((await service.stop(PROMPT_MS)).status).toBe(0);
    },
    DEADLINE_MS,
  );
}
