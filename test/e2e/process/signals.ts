import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { RawConnection } from "../../support/raw-http.ts";
import { postBytes, registration } from "../../support/relay.ts";
import { Process, Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const DEADLINE_MS = 60_000;
const HEALTHZ = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
const NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

function canBeProcess1(): boolean {
  try {
    if (Bun.spawnSync([...NAMESPACE, "true"]).success) return true;
  } catch {
    // There is no such command here.
  }
  console.log("skipped: process 1 needs root and the unshare command");
  return false;
}

/** A request that is running: the service has its head and waits for the rest of its body. */
async function runningRequest(url: string) {
  const body = JSON.stringify(registration());
  const connection = await RawConnection.open(url);
  connection.send(postBytes("", `Content-Length: ${body.length}\r\nExpect: 100-continue`));
  // This answer shows that the head has arrived.
  expect((await connection.response()).status).toBe(100);
  connection.send(body.slice(0, 20));
  return { connection, rest: body.slice(20) };
}

/** What signals do to a service that serves, as process 1 or any other. */
export function drainTests(command: readonly string[]): void {
  const start = () => Service.start(command);

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test.concurrent(
      `after ${signal} running requests finish, no new connections are taken, and it exits 0`,
      async () => {
        await using service = await start();
        const { connection, rest } = await runningRequest(service.url);
        using _ = connection;
        using open = await RawConnection.open(service.url);
        open.send("GET /healthz HTTP/1.1\r\nHo");
        using idle = await RawConnection.open(service.url);
        idle.send(HEALTHZ);
        expect((await idle.response()).status).toBe(200);
        await Bun.sleep(200);

        service.kill(signal);
        await service.says(/stopping/);
        open.send("st: x\r\n\r\n");
        const health = await open.response();
        expect(health.status).toBe(503);
        expect(health.body).toHaveLength(0);
        const refused = await until("connections to be refused", async () => {
          try {
            using _late = await RawConnection.open(service.url);
            return undefined;
          } catch (error) {
            return error;
          }
        });
        expect(refused).toMatchObject({ code: "ECONNREFUSED" });
        await idle.closed;
        expect(service.isRunning).toBe(true);

        connection.send(rest);
        const { status, body } = await connection.response();
        expect(status).toBe(200);
        expect(body.toString()).toContain("lease_duration_s");
        // At once: nothing is left to wait for.
        expect(await service.ended(5000)).toEqual({ status: 0, signal: null });
        expect(service.stdout).toBe("");
        expect(service.lines.at(-1)).toContain(signal);
      },
      DEADLINE_MS,
    );

    test.concurrent(
      `${signal} ends a service at once where nothing is running`,
      async () => {
        await using service = await start();
        using idle = await RawConnection.open(service.url);
        idle.send(HEALTHZ);
        await idle.response();
        service.kill(signal);
        expect(await service.ended(5000)).toEqual({ status: 0, signal: null });
        await idle.closed;
      },
      DEADLINE_MS,
    );
  }

  for (const [first, second, status] of [
    ["SIGTERM", "SIGTERM", 143],
    ["SIGINT", "SIGINT", 130],
    ["SIGTERM", "SIGINT", 130],
    ["SIGINT", "SIGTERM", 143],
  ] as const) {
    test.concurrent(
      `${second} after ${first} exits at once with ${status}`,
      async () => {
        await using service = await start();
        const { connection } = await runningRequest(service.url);
        using _ = connection;
        service.kill(first);
        await service.says(/stopping/);
        expect(service.isRunning).toBe(true);
        service.kill(second);
        // The running request alone would have kept it for ten seconds.
        expect(await service.ended(5000)).toEqual({ status, signal: null });
      },
      DEADLINE_MS,
    );
  }

  test.concurrent(
    "a running request has seconds to finish after SIGTERM",
    async () => {
      await using service = await start();
      const { connection, rest } = await runningRequest(service.url);
      using _ = connection;
      service.kill("SIGTERM");
      for (const byte of rest.slice(0, 12)) {
        await Bun.sleep(500);
        connection.send(byte);
      }
      connection.send(rest.slice(12));
      expect((await connection.response()).status).toBe(200);
      expect(await service.ended()).toEqual({ status: 0, signal: null });
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a running request that never finishes is cut after ten seconds, and it still exits 0",
    async () => {
      await using service = await start();
      const { connection } = await runningRequest(service.url);
      using _ = connection;
      const stopAtMs = performance.now();
      service.kill("SIGTERM");
      const trickle = setInterval(() => connection.send(" "), 300);
      try {
        expect(await service.ended(30_000)).toEqual({ status: 0, signal: null });
      } finally {
        clearInterval(trickle);
      }
      expect(performance.now() - stopAtMs).toBeLessThan(20_000);
      await connection.closed;
      expect(connection.rest).toBe("");
    },
    DEADLINE_MS,
  );
}

export function signalTests(command: readonly string[]): void {
  drainTests(command);

  test.skipIf(!canBeProcess1()).concurrent(
    "signals do the same where the service is process 1",
    async () => {
      for (const [signals, status] of [
        [["SIGTERM"], 0],
        [["SIGINT"], 0],
        [["SIGTERM", "SIGTERM"], 143],
        [["SIGINT", "SIGINT"], 130],
      ] as const) {
        await using outside = await Service.start([...NAMESPACE, ...command]);
        const children = readFileSync(`/proc/${outside.pid}/task/${outside.pid}/children`, "utf8");
        const pid = Number(children.trim());
        expect(readFileSync(`/proc/${pid}/status`, "utf8")).toMatch(/^NSpid:.*\t1$/m);
        const { connection, rest } = await runningRequest(outside.url);
        using _ = connection;
        for (const signal of signals) {
          process.kill(pid, signal);
          await outside.says(/stopping/);
        }
        if (status === 0) {
          connection.send(rest);
          expect((await connection.response()).status).toBe(200);
        }
        expect(await outside.ended(8000)).toEqual({ status, signal: null });
      }
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a signal in the middle of the start is never lost",
    async () => {
      for (let delayMs = 0; delayMs < 300; delayMs += 30) {
        await using child = new Process(command, { args: ["--listen", "127.0.0.1:0"] });
        await Bun.sleep(delayMs);
        child.kill("SIGTERM");
        const { status, signal } = await child.ended();
        // Before it listens for signals the system ends it.
        expect([status, signal]).toEqual(status === 0 ? [0, null] : [null, "SIGTERM"]);
      }
    },
    DEADLINE_MS,
  );
}
