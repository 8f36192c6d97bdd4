import { expect, test } from "bun:test";
import { Representation } from "../../src/directory/representation.ts";
import { ListWaiters } from "../../src/directory/waiters.ts";
import { responseOf } from "../../src/http/answer.ts";
import { listHandler } from "../../src/http/waiting.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { SteppedClock } from "../support/stepped-clock.ts";

/** A list, and clients that ask for it. */
function setUp() {
  const clock = new SteppedClock();
  let current = new Representation("0");
  let isFull = false;
  const waiters = new ListWaiters({ list: () => current, isFull: () => isFull, clock });
  const handler = listHandler(waiters);
  const timeouts: number[] = [];
  const server = { timeout: (_: Request, seconds: number) => void timeouts.push(seconds) };
  return {
    clock,
    waiters,
    timeouts,
    etag: () => current.etags.identity,
    change(body: string) {
      current = new Representation(body);
      waiters.changed();
    },
    fill() {
      isFull = true;
    },
    /** What a client gets: it is empty as long as that is nothing. */
    ask(
      headers: Record<string, string>,
      { method = "GET", signal = new AbortController().signal } = {},
    ) {
      const request = new Request("http://x/", { method, headers, signal });
      const answer: { now: boolean; response?: Response } = { now: false };
      const given = handler(request, server);
      if (given instanceof Promise) {
        void given.then((late) => {
          answer.response = responseOf(late);
        });
      } else Object.assign(answer, { now: true, response: responseOf(given) });
      return answer;
    },
  };
}

const appliedOf = (answer: { response?: Response }) =>
  answer.response?.headers.get("preference-applied");

test.each(["GET", "HEAD"])("%s waits for a list that differs from its ETag", async (method) => {
  const { clock, change, etag, ask } = setUp();
  const before = etag();
  const answer = ask({ "If-None-Match": before, Prefer: "wait=20" }, { method });
  await clock.run(10_000);
  expect(answer.response).toBeUndefined();
  change("1");
  await clock.run(0);
  expect(answer.response?.status).toBe(200);
  expect(answer.response?.headers.get("etag")).toBe(etag());
  expect(etag()).not.toBe(before);
  expect(appliedOf(answer)).toBe("wait=20");
  expect(await answer.response?.text()).toBe("1");
});

test.each([
  ["wait=20", 20],
  ["wait=60", 60],
  ["wait=61", 60],
  ["wait=9999999999999999999999", 60],
])("with %s it is 304 after %d s, and says so", async (prefer, secs) => {
  const { clock, etag, ask } = setUp();
  const answer = ask({ "If-None-Match": etag(), Prefer: prefer });
  await clock.run(secs * 1000 - 1);
  expect(answer.response).toBeUndefined();
  await clock.run(1);
  expect(answer.response?.status).toBe(304);
  expect(answer.response?.headers.get("etag")).toBe(etag());
  expect(appliedOf(answer)).toBe(`wait=${secs}`);
});

test("a list that differs already is answered at once, and the preference counts as applied", async () => {
  const { clock, ask } = setUp();
  const answer = ask({ "If-None-Match": '"old"', Prefer: "wait=20" });
  await clock.run(0);
  expect(answer.response?.status).toBe(200);
  expect(appliedOf(answer)).toBe("wait=20");
});

test("a client waits while the list is any of those that it has, in any coding", async () => {
  const { clock, change, ask } = setUp();
  const zero = new Representation("0").etags.zstd;
  const one = new Representation("1").etags.gzip;
  const answer = ask({ "If-None-Match": `W/${zero}, "x", ${one}`, Prefer: "wait=20" });
  await clock.run(1000);
  change("1");
  await clock.run(1000);
  expect(answer.response).toBeUndefined();
  change("2");
  await clock.run(0);
  expect(answer.response?.status).toBe(200);
});

test("each waiter gets the list in its own coding", async () => {
  const { clock, change, etag, ask } = setUp();
  const waiting = { "If-None-Match": etag(), Prefer: "wait=20" };
  const answers = ["identity", "gzip", "zstd"].map((coding) =>
    ask({ ...waiting, "Accept-Encoding": coding }),
  );
  await clock.run(1000);
  change("x".repeat(2000));
  await clock.run(0);
  const codings = answers.map(({ response }) => response?.headers.get("content-encoding"));
  expect(codings).toEqual([null, "gzip", "zstd"]);
});

test.each<[string, Record<string, string>, number]>([
  ["no If-None-Match", { Prefer: "wait=20" }, 200],
  ["If-None-Match: *", { Prefer: "wait=20", "If-None-Match": " * " }, 304],
  ["no Prefer", { "If-None-Match": new Representation("0").etags.identity }, 304],
  [
    "a malformed wait",
    { "If-None-Match": new Representation("0").etags.identity, Prefer: "wait=soon" },
    304,
  ],
])("with %s nothing is waited for", (_, headers, status) => {
  const { ask, waiters } = setUp();
  const answer = ask(headers);
  expect(answer.now).toBe(true);
  expect(answer.response?.status).toBe(status);
  expect(appliedOf(answer)).toBeNull();
  expect(waiters.count).toBe(0);
});

test("wait=0 is answered at once, and says that it was applied", () => {
  const { etag, ask } = setUp();
  const unchanged = ask({ "If-None-Match": etag(), Prefer: "wait=0" });
  expect([unchanged.now, unchanged.response?.status]).toEqual([true, 304]);
  expect(appliedOf(unchanged)).toBe("wait=0");
});

test("where as many wait as may, the answer comes at once and does not say that it waited", () => {
  const { etag, fill, ask, timeouts } = setUp();
  fill();
  const answer = ask({ "If-None-Match": etag(), Prefer: "wait=20" });
  expect([answer.now, answer.response?.status]).toEqual([true, 304]);
  expect(appliedOf(answer)).toBeNull();
  expect(timeouts).toEqual([]);
});

test("a connection may be silent for the wait and as long as any other; then as any other", async () => {
  const { clock, etag, ask, timeouts } = setUp();
  ask({ "If-None-Match": etag(), Prefer: "wait=20" });
  expect(timeouts).toEqual([33]);
  await clock.run(20_000);
  expect(timeouts).toEqual([33, 13]);
});

test("a client that goes away is answered to nobody", async () => {
  const { clock, etag, ask, waiters } = setUp();
  const controller = new AbortController();
  const { signal } = controller;
  const answer = ask({ "If-None-Match": etag(), Prefer: "wait=20" }, { signal });
  expect(waiters.count).toBe(1);
  controller.abort();
  expect(waiters.count).toBe(0);
  await clock.run(0);
  expect(answer.response?.status).toBe(499);
});

test("at the end a waiter is answered before its time is up", async () => {
  const { clock, etag, ask, waiters } = setUp();
  const answer = ask({ "If-None-Match": etag(), Prefer: "wait=20" });
  waiters.end();
  await clock.run(0);
  expect(answer.response?.status).toBe(304);
  const late = ask({ "If-None-Match": etag(), Prefer: "wait=20" });
  expect([late.now, late.response?.status]).toEqual([true, 304]);
});

test("while the list can't be told, a client that wants to wait is told so at once", () => {
  const clock = new SteppedClock();
  const list = () => {
    throw new ServiceError("unavailable", "not yet");
  };
  const handler = listHandler(new ListWaiters({ list, isFull: () => false, clock }));
  const headers = { "If-None-Match": '"a"', Prefer: "wait=20" };
  const ask = () => handler(new Request("http://x/", { headers }), { timeout() {} });
  expect(ask).toThrow("not yet");
});
