import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { exchange, RawConnection } from "../../support/raw-http.ts";
import {
  getPools,
  post,
  postBytes,
  register,
  registerMany,
  registration,
} from "../../support/relay.ts";
import { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const DEADLINE_MS = 60_000;
const GET = "GET /pools HTTP/1.1\r\nHost: x\r\n\r\n";

/** How much memory a process holds, in MiB. */
function residentMib(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1024;
}

/** The most memory that a process holds while time passes. */
async function peakMib(pid: number, secs: number): Promise<number> {
  let peak = 0;
  for (let n = 0; n < secs * 10; n += 1) {
    peak = Math.max(peak, residentMib(pid));
    await Bun.sleep(100);
  }
  return peak;
}

/** How much processor time a process has taken, in seconds. */
function processorSecs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

async function openMany(url: string, count: number): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  // A few at a time: the system lets only so many wait to be accepted.
  while (connections.length < count) {
    const few = Math.min(100, count - connections.length);
    const opened = Array.from({ length: few }, () => RawConnection.open(url));
    connections.push(...(await Promise.all(opened)));
  }
  return connections;
}

function closeAll(connections: readonly RawConnection[]): void {
  for (const connection of connections) connection[Symbol.dispose]();
}

const healthz = async (url: string) => (await fetch(`${url}/healthz`)).status;

export function abuseTests(command: readonly string[]): void {
  const start = () => Service.start(command, { args: ["--lease-duration-secs", "600"] });
  const large = (n: number) =>
    registration({
      key: { cluster_id: "c", namespace: "n", dgd_name: `large-${n}` },
      model: "m".repeat(250_000),
    });

  describe("memory stays bounded under", () => {
    test(
      "readers that don't read",
      async () => {
        await using service = await start();
        const bodies = Array.from({ length: 100 }, (_, n) => JSON.stringify(large(n)));
        await registerMany(service.url, bodies);
        expect((await getPools(service.url)).pools.length).toBe(100);
        const before = residentMib(service.pid);
        // A list for each of them would be a gigabyte.
        const readers = await openMany(service.url, 40);
        for (const reader of readers) {
          reader.pause();
          reader.send(GET);
        }
        expect(await peakMib(service.pid, 2)).toBeLessThan(before + 150);
        expect(await healthz(service.url)).toBe(200);
        closeAll(readers);
      },
      DEADLINE_MS,
    );

    test(
      "large bodies that never end, while relays are heard",
      async () => {
        await using service = await start();
        await register(service.url, registration());
        const before = residentMib(service.pid);
        const writers = await openMany(service.url, 800);
        const part = Buffer.alloc(200_000, "x");
        const [whole, chunked] = ["Content-Length: 262144", "Transfer-Encoding: chunked"];
        for (const [at, writer] of writers.entries()) {
          writer.send(postBytes(at % 2 === 0 ? "" : "3ffff\r\n", at % 2 === 0 ? whole : chunked));
          writer.send(part);
        }
        const peak = peakMib(service.pid, 3);
        await service.says(/WARN .*large bodies are refused/);
        await register(service.url, registration());
        const refused = await post(service.url, large(0));
        expect(refused.status).toBe(503);
        expect(await refused.text()).toContain("33554432");
        // All of what they send would be 160 MB.
        expect(await peak).toBeLessThan(before + 120);
        closeAll(writers);
        await until("room for a large body", async () =>
          (await post(service.url, large(0))).status === 200 ? true : undefined,
        );
        expect(service.stderr.match(/large bodies are refused/g)).toHaveLength(1);
      },
      DEADLINE_MS,
    );

    test(
      "ten thousand idle connections",
      async () => {
        const [, most] =
          /open files +\d+ +(\d+)/.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
        await using service = await start();
        const before = residentMib(service.pid);
        const idle = await openMany(service.url, Math.min(10_000, Number(most) - 1000));
        for (const connection of idle) connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        expect((await idle.at(-1)?.response())?.status).toBe(200);
        expect(residentMib(service.pid)).toBeLessThan(before + 100);
        expect(await healthz(service.url)).toBe(200);
        closeAll(idle);
      },
      DEADLINE_MS,
    );
  });

  test(
    "where no more files can be opened, open connections are served, and new ones later",
    async () => {
      await using service = await Service.start([
        ...["sh", "-c", 'ulimit -n 120 && exec "$@"', "sh"],
        ...command,
      ]);
      const [first, ...others] = await openMany(service.url, 200);
      if (first === undefined) throw new Error("there is no connection");
      await Bun.sleep(500);
      const before = processorSecs(service.pid);
      await Bun.sleep(2000);
      expect(processorSecs(service.pid) - before).toBeLessThan(1.6);
      first.send(GET);
      expect((await first.response()).status).toBe(200);
      closeAll(others);
      expect(await healthz(service.url)).toBe(200);
      expect(await service.stop()).toEqual({ status: 0, signal: null });
    },
    DEADLINE_MS,
  );

  test("headers of more than 16 KiB, or by the thousand, are refused", async () => {
    await using service = await start();
    const names = Array.from({ length: 1000 }, (_, n) => `A${n}: b\r\n`).join("");
    for (const header of [`A: ${"a".repeat(17_000)}\r\n`, names]) {
      const { status } = await exchange(
        service.url,
        `GET /pools HTTP/1.1\r\nHost: x\r\n${header}\r\n`,
      );
      expect(status).toBe(431);
    }
    expect(await healthz(service.url)).toBe(200);
  });

  test("where a request ends is never in doubt: none hides in the body of another", async () => {
    await using service = await start();
    const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    const chunked = "Transfer-Encoding: chunked";
    const body = `0\r\n\r\n${hidden}`;
    const doubtful = [
      `Content-Length: 2\r\nContent-Length: ${2 + hidden.length}\r\n\r\n{}${hidden}`,
      `Content-Length: ${2 + hidden.length}\r\nContent-Length: 2\r\n\r\n{}${hidden}`,
      ...["2, 2", "+2", "0x2", "-2", "", "2 2", "18446744073709551618"].map(
        (length) => `Content-Length: ${length}\r\n\r\n{}${hidden}`,
      ),
      `Content-Length: 5\r\n${chunked}\r\n\r\n${body}`,
      `${chunked}\r\nContent-Length: 5\r\n\r\n${body}`,
      ...["xchunked", "chunked, identity", "identity, chunked", "\vchunked"].map(
        (coding) => `Transfer-Encoding: ${coding}\r\n\r\n${body}`,
      ),
      `${chunked}\r\nTransfer-Encoding: identity\r\n\r\n${body}`,
      `Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n${body}`,
      `Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n${body}`,
      `A: b\r${chunked}\r\nContent-Length: 5\r\n\r\n${body}`,
      `Content-Length : ${hidden.length}\r\n\r\n${hidden}`,
      ...["0x2\r\n{}", "10000000000000002\r\n{}", "2\n{}", "2;\n{}", "2\r\n{}XX"].map(
        (chunk) => `${chunked}\r\n\r\n${chunk}\r\n${body}`,
      ),
    ];
    await Promise.all(
      doubtful.map(async (rest) => {
        using connection = await RawConnection.open(service.url);
        const head = "POST /pools HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
        connection.send(Buffer.from(head + rest, "latin1"));
        expect((await connection.response()).status, rest).toBe(400);
        await connection.closed;
        expect(connection.rest, rest).not.toContain("404");
      }),
    );
    expect(await healthz(service.url)).toBe(200);
  });

  test("no answer and no line of the log has in it what could change how it is read", async () => {
    await using service = await start();
    const odd = "a\u2028\u202e\u200b<script>alert(1)</script>\u{e0041}";
    await register(
      service.url,
      registration({ key: { cluster_id: odd, namespace: "n", dgd_name: "d" } }),
    );
    await service.says(/pool added/);
    for (const line of service.lines) expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    const refused = await post(service.url, registration({ frontends: [odd] }));
    expect(refused.status).toBe(400);
    expect(refused.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await refused.text()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    for (const path of ["/<script>", "/%0d%0aSet-Cookie:a=b"]) {
      const missing = await fetch(`${service.url}${path}`, {
        headers: { "User-Agent": "<script>" },
      });
      expect(missing.headers.get("set-cookie")).toBeNull();
      expect(await missing.text()).not.toMatch(/script|Set-Cookie/i);
    }
  });
}
