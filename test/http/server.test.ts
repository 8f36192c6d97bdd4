import { expect, test } from "bun:test";
import type { Directory } from "../../src/directory/directory.ts";
import { Representation } from "../../src/directory/representation.ts";
import { Waiters } from "../../src/directory/waiters.ts";
import type { Answer } from "../../src/http/answer.ts";
import { BodyReader } from "../../src/http/body.ts";
import { RequestCounts } from "../../src/http/request-counts.ts";
import { createRoutes, notFound, type Routes } from "../../src/http/routes.ts";
import { listen } from "../../src/http/server.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { pairs } from "../fixtures/tls.ts";
import { makeFacts } from "../support/facts.ts";
import { makeAnswer } from "../support/make-answer.ts";
import { recordedLog } from "../support/recorded-log.ts";

function serve(routes: Routes, tls?: Bun.TLSOptions) {
  const { log, lines } = recordedLog();
  const address = { host: "127.0.0.1", port: 0 };
  const clock = systemClock;
  const requests = new RequestCounts(clock);
  return { ...listen({ address, tls, routes, requests, clock, log }), lines };
}

test("a handler that throws gives 500 internal error and a log line", async () => {
  const server = serve({
    "/sync": () => {
      throw new Error("secret\nsecond line");
    },
    "/async": () => Promise.reject(new Error("secret")),
  });
  for (const path of ["/sync", "/async"]) {
    const response = await fetch(`${server.url}${path}`);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe("internal error");
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  }
  expect(server.lines.map(({ level, message }) => [level, message])).toEqual([
    ["error", "a request failed"],
    ["error", "a request failed"],
  ]);
  await server.drain();
});

test("what the TLS library refuses to serve with is put down to the TLS files, not to the address", () => {
  const cert = `${pairs.one.cert}${pairs.two.cert.replace("BEGIN CERT", "BEGIN BERT")}`;
  expect(() => serve({}, { cert, key: pairs.one.key })).toThrow(
    "--tls-cert-path, --tls-key-path: these files can't be served with: error:",
  );
});

test("draining waits for the requests that run, and says whether they all finished", async () => {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  let started = () => {};
  const running = new Promise<void>((go) => {
    started = go;
  });
  const server = serve({
    "/slow": () => {
      started();
      return promise;
    },
  });
  const answer = fetch(`${server.url}/slow`);
  await running;
  const drained = server.drain();
  await expect(fetch(`${server.url}/slow`)).rejects.toThrow();
  resolve(makeAnswer({ body: "done" }));
  expect(await (await answer).text()).toBe("done");
  expect(await drained).toBe(true);
});

test("a path that takes other methods names them all, and any other path is not there", async () => {
  const list = new Representation("{}");
  const directory: Directory = {
    open: async () => {},
    isReady: () => true,
    renew: () => false,
    register() {},
    expire() {},
    pools: () => list,
    routers: () => list,
    onChange() {},
    facts: () => makeFacts(),
    knownPools: () => [],
    poolFacts: () => undefined,
    close() {},
  };
  const routes = createRoutes({
    directory,
    waiters: new Waiters(directory, systemClock),
    bodies: new BodyReader(systemClock, recordedLog().log),
    heartbeatIntervalSecs: 5,
    leaseDurationSecs: 15,
    metrics: async () => "",
    isStopping: () => false,
    service: {
      version: "1.2.3",
      mode: "registrations",
      store: "memory",
      startedAtMs: 0,
      startedAtWallMs: 0,
    },
    clock: systemClock,
  });
  const answer = async (method: string, path: string) => {
    const request = new Request(`http://x${path}`, { method });
    return await routes[path]?.(request, { timeout() {} }, method);
  };
  const allow = async (method: string, path: string) =>
    new Headers((await answer(method, path))?.headers).get("allow");
  expect(await allow("PUT", "/pools")).toBe("GET, HEAD, POST");
  expect(await allow("POST", "/routers")).toBe("GET, HEAD");
  expect((await answer("POST", "/healthz"))?.status).toBe(405);
  expect((await answer("HEAD", "/healthz"))?.status).toBe(200);
  expect(notFound(routes).status).toBe(404);
});
