import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Answer } from "../../src/http/answer.ts";
import { RequestCounts } from "../../src/http/request-counts.ts";
import type { Handler } from "../../src/http/routes.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeAnswer } from "../support/make-answer.ts";

const noServer = { timeout() {} };

function setUp(handler: Handler, route = "/pools") {
  const clock = new FakeClock();
  const requests = new RequestCounts(clock);
  const answerTo = () => makeAnswer({ status: 500 });
  const counted = requests.counted(route, handler, answerTo);
  const ask = async (method = "GET") =>
    await counted(new Request("http://x/", { method }), noServer);
  /** What was counted, as `method status count`, and how many times were taken. */
  const counts = () =>
    requests.series().flatMap(({ method, statuses, duration }) => {
      const timed = duration.cumulativeCounts().at(-1);
      return [...statuses].map(([status, count]) => `${method} ${status} ${count} timed ${timed}`);
    });
  return { clock, requests, ask, counts };
}

test("requests are counted by route, method and status", async () => {
  let status = 200;
  const { ask, counts } = setUp(() => makeAnswer({ status }));
  expect(counts()).toEqual(["GET 200 0 timed 0"]);
  await ask();
  await ask("HEAD");
  status = 304;
  await ask();
  await ask();
  expect(counts()).toEqual(["GET 200 1 timed 3", "GET 304 2 timed 3", "HEAD 200 1 timed 1"]);
});

test("what a handler throws, at once or later, is answered, counted and timed", async () => {
  const handlers: Handler[] = [
    () => {
      throw new Error("at once");
    },
    () => Promise.reject(new Error("later")),
  ];
  for (const handler of handlers) {
    const { ask, counts } = setUp(handler, "other");
    expect((await ask("POST")).status).toBe(500);
    expect(counts()).toEqual(["POST 500 1 timed 1"]);
  }
});

test("the time of a request is from its headers to its answer", async () => {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const { clock, ask, requests } = setUp(() => promise);
  const answer = ask("POST");
  clock.advance(40);
  resolve(makeAnswer());
  await answer;
  const duration = requests.series().find(({ method }) => method === "POST")?.duration;
  expect(duration?.sumSecs).toBe(0.04);
});

test("the time of a request that was held is left out, whether or not its client stayed", async () => {
  const answers = [
    makeAnswer({ status: 304, mayHaveWaited: true }),
    makeAnswer({ status: 499, mayHaveWaited: true }),
  ];
  for (const answer of answers) {
    const { ask, counts } = setUp(async () => answer);
    await ask();
    expect(counts()).toEqual(["GET 200 0 timed 0", `GET ${answer.status} 1 timed 0`]);
  }
});

test("the time of a request that would have waited, and had no need to, is not", async () => {
  const { ask, counts } = setUp(() => makeAnswer({ mayHaveWaited: true }));
  await ask();
  expect(counts()).toEqual(["GET 200 1 timed 1"]);
});

test("a route that is served anew goes on counting", async () => {
  const { ask, counts, requests } = setUp(() => makeAnswer());
  await ask();
  const again = requests.counted(
    "/pools",
    () => makeAnswer(),
    () => makeAnswer(),
  );
  await again(new Request("http://x/"), noServer);
  expect(counts()).toEqual(["GET 200 2 timed 2"]);
});

test("no method that a client makes up makes a series", async () => {
  const token = fc.string({
    unit: fc.constantFrom(..."ABCdefGX-_"),
    minLength: 1,
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(token, { minLength: 1 }), async (methods) => {
      const { requests } = setUp(() => makeAnswer());
      const counted = requests.counted(
        "/pools",
        () => makeAnswer(),
        () => makeAnswer(),
      );
      for (const method of methods) {
        // A `Request` that is made here takes none of them, unlike one that a server parses.
        const request = Object.defineProperty(new Request("http://x/"), "method", {
          value: method,
        });
        await counted(request, noServer);
      }
      expect(requests.series().map(({ method }) => method)).toEqual(["GET", "other"]);
    }),
  );
});
