import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { Representation } from "../../src/directory/representation.ts";
import { ListWaiters } from "../../src/directory/waiters.ts";
import { RequestCounts } from "../../src/http/request-counts.ts";
import { type HttpServer, listen } from "../../src/http/server.ts";
import { listHandler } from "../../src/http/waiting.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { pairs } from "../fixtures/tls.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { until } from "../support/until.ts";

const list = new Representation("{}");
const head = (fields: string) => `GET /list HTTP/1.1\r\nHost: x\r\n${fields}\r\n`;
const WAIT = head(`If-None-Match: ${list.etags.identity}\r\nPrefer: wait=60\r\n`);

describe.each([
  ["plain HTTP", undefined],
  ["TLS", pairs.one],
])("over %s a client that waits and goes away is forgotten at once", (_, tls) => {
  const waiters = new ListWaiters({ list: () => list, isFull: () => false, clock: systemClock });
  const { log, lines } = recordedLog();
  let server: HttpServer;
  beforeAll(() => {
    const routes = { "/list": listHandler(waiters) };
    const address = { host: "127.0.0.1", port: 0 };
    const requests = new RequestCounts(systemClock);
    server = listen({ address, tls, routes, requests, clock: systemClock, log });
  });
  afterAll(async () => {
    await server.drain();
    expect(lines).toEqual([]);
  });

  async function connect(): Promise<Socket> {
    const port = Number(new URL(server.url).port);
    const { promise: isOpen, resolve } = Promise.withResolvers<void>();
    const socket =
      tls === undefined
        ? connectPlain({ host: "127.0.0.1", port }, resolve)
        : connectTls({ host: "127.0.0.1", port, ca: tls.cert, servername: "localhost" }, resolve);
    await isOpen;
    return socket;
  }

  const count = (expected: number) =>
    until(`${expected} waiters`, () => waiters.count === expected || undefined);

  test.each<[string, (socket: Socket) => unknown]>([
    ["it closes the connection", (socket) => socket.destroy()],
    ["it resets the connection", (socket) => socket.resetAndDestroy()],
    ["it says that it sends no more", (socket) => socket.end()],
    ["it sends something else on the connection", (socket) => socket.write(head(""))],
  ])("where %s", async (_what, leave) => {
    const socket = await connect();
    socket.on("error", () => {});
    socket.write(WAIT);
    await count(1);
    leave(socket);
    await count(0);
    socket.destroy();
  });

  test("where it used the connection before", async () => {
    const socket = await connect();
    const { promise: isAnswered, resolve } = Promise.withResolvers<void>();
    socket.once("data", () => resolve());
    socket.write(head(""));
    await isAnswered;
    socket.write(WAIT);
    await count(1);
    socket.destroy();
    await count(0);
  });

  test("where it gives up a fetch", async () => {
    const controller = new AbortController();
    const answer = fetch(`${server.url}/list`, {
      headers: { "If-None-Match": list.etags.identity, Prefer: "wait=60" },
      signal: controller.signal,
      ...(tls === undefined ? {} : { tls: { ca: tls.cert } }),
    }).catch((error: unknown) => error);
    await count(1);
    controller.abort();
    await count(0);
    expect(await answer).toBeInstanceOf(Error);
  });
});
