import { expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { RawConnection } from "../../support/raw-http.ts";
import { postBytes, registration } from "../../support/relay.ts";
import { once, Service } from "../../support/service.ts";
import { until, within } from "../../support/until.ts";

const DEADLINE_MS = 90_000;
const HEALTHZ = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
const SILENT_MS = 10_000;
const REQUEST_MS = 30_000;
/** What a time-out may be late by: the server counts in steps of seconds, and machines are busy. */
const LATE_MS = 15_000;

/** How many sockets a process has. It may have other files open, such as a long list's own memory. */
function openSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  const links = readdirSync(folder).map((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`);
    } catch {
      return "closed meanwhile";
    }
  });
  return links.filter((link) => link.startsWith("socket:")).length;
}

export function timeoutTests(command: readonly string[]): void {
  const shared = once(() => Service.start(command));

  test.concurrent(
    "a connection that sends nothing for 10 s is cut, whatever it sent before",
    async () => {
      const service = await shared();
      const silent = {
        nothing: [],
        "one byte": ["G"],
        "half a head": ["GET /healthz HTTP/1.1\r\nHos"],
        "a whole request": [HEALTHZ],
        "two requests": [HEALTHZ, HEALTHZ],
        "a head without its body": [postBytes("", "Content-Length: 100")],
        "half a body": [postBytes("{}", "Content-Length: 100")],
        "half a chunk": [postBytes("5\r\n{", "Transfer-Encoding: chunked")],
        "a body that nobody waits for": [
          "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        ],
      };
      await Promise.all(
        Object.entries(silent).map(async ([what, data]) => {
          using connection = await RawConnection.open(service.url);
          for (const each of data) connection.send(each);
          await within(SILENT_MS + LATE_MS, `the end of ${what}`, connection.closed);
        }),
      );
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a connection that has sent nothing for less than 10 s is not cut",
    async () => {
      const service = await shared();
      // Started at different moments, since a server may count in coarse steps.
      const silences = await Promise.all(
        Array.from({ length: 10 }, async (_, index) => {
          await Bun.sleep(index * 500);
          using connection = await RawConnection.open(service.url);
          const sentAtMs = performance.now();
          connection.send(HEALTHZ);
          await connection.response();
          return (await connection.closed) - sentAtMs;
        }),
      );
      expect(Math.min(...silences)).toBeGreaterThanOrEqual(SILENT_MS);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a request that is not complete after 30 s is cut, trickled or not",
    async () => {
      const service = await shared();
      const chunked = "Transfer-Encoding: chunked";
      const trickled: [what: string, head: string, drop: string][] = [
        ["header lines", "GET /healthz HTTP/1.1\r\nHost: x\r\n", "A: b\r\n"],
        ["one header line", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: ", "b"],
        ["a request line", "GET /", "a"],
        ["a body", postBytes("", "Content-Length: 9999"), " "],
        ["chunks", postBytes("", chunked), "1\r\n \r\n"],
        ["one chunk", postBytes("fff\r\n", chunked), " "],
        ["the body of a GET", `GET /pools HTTP/1.1\r\nHost: x\r\n${chunked}\r\n\r\n`, "1\r\n \r\n"],
        ["a refused body", `POST /pools HTTP/1.1\r\nHost: x\r\n${chunked}\r\n\r\n`, "1\r\n \r\n"],
      ];
      await Promise.all(
        trickled.map(async ([what, head, drop]) => {
          using connection = await RawConnection.open(service.url);
          connection.send(head);
          const trickle = setInterval(() => connection.send(drop), 400);
          try {
            await within(REQUEST_MS + LATE_MS, `the end of ${what}`, connection.closed);
          } finally {
            clearInterval(trickle);
          }
        }),
      );
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a request that takes seconds to arrive is answered",
    async () => {
      const service = await shared();
      const bytes = postBytes(JSON.stringify(registration()));
      using connection = await RawConnection.open(service.url);
      for (let part = 0; part < 10; part += 1) {
        const size = Math.ceil(bytes.length / 10);
        connection.send(bytes.slice(part * size, (part + 1) * size));
        await Bun.sleep(500);
      }
      expect((await connection.response()).status).toBe(200);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a client that does not read its answer is cut as well",
    async () => {
      await using service = await Service.start(command, { args: ["--lease-duration-secs", "99"] });
      const before = openSockets(service.pid);
      // More than the buffers between the two hold.
      await Promise.all(
        Array.from({ length: 60 }, async () => {
          using sender = await RawConnection.open(service.url);
          sender.send(postBytes(JSON.stringify(registration({ model: "m".repeat(250_000) }))));
          expect((await sender.response()).status).toBe(200);
        }),
      );
      await until("the senders to be gone", () =>
        openSockets(service.pid) <= before ? true : undefined,
      );
      using reader = await RawConnection.open(service.url);
      reader.pause();
      reader.send("GET /pools HTTP/1.1\r\nHost: x\r\n\r\n");
      await until("the connection", () => (openSockets(service.pid) > before ? true : undefined));
      // A client that does not read can't see that it was cut.
      const isCut = () => (openSockets(service.pid) <= before ? true : undefined);
      await until("the connection to be cut", isCut, SILENT_MS + LATE_MS);
      reader.resume();
      await within(5000, "the end of the connection", reader.closed);
      expect(reader.rest.length).toBeLessThan(60 * 250_000);
    },
    DEADLINE_MS,
  );
}
