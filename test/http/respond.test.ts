import { expect, test } from "bun:test";
import { Representation } from "../../src/directory/representation.ts";
import { responseOf } from "../../src/http/answer.ts";
import { conditionOf } from "../../src/http/negotiate.ts";
import { errorAnswer, listAnswer, refusal } from "../../src/http/respond.ts";
import { ServiceError } from "../../src/runtime/errors.ts";

const list = new Representation(`{"pools":["${"x".repeat(2000)}"]}`);
const answerTo = (request: Request, waitSecs?: number) =>
  responseOf(listAnswer(request, conditionOf(request), list, waitSecs));
const get = (headers: Record<string, string> = {}) =>
  answerTo(new Request("http://x/", { headers }));

test("a list has its bytes, its type, a strong ETag, and says how it may be cached", async () => {
  const response = get();
  expect(response.status).toBe(200);
  expect(await response.bytes()).toEqual(list.bytes);
  expect(Object.fromEntries(response.headers)).toEqual({
    "content-type": "application/json",
    "cache-control": "no-cache",
    etag: `"${list.hash}"`,
    vary: "Accept-Encoding",
    "x-content-type-options": "nosniff",
  });
});

test("a coded list says its coding, and has that coding's ETag", async () => {
  const response = get({ "accept-encoding": "gzip" });
  expect(response.headers.get("content-encoding")).toBe("gzip");
  expect(response.headers.get("etag")).toBe(`"${list.hash}-gzip"`);
  expect(Bun.gunzipSync(await response.arrayBuffer())).toEqual(list.bytes);
});

test("only who was allowed to wait is told so, for how long", () => {
  for (const waitSecs of [undefined, 5, 60, undefined]) {
    const { headers } = answerTo(new Request("http://x/"), waitSecs);
    const expected = waitSecs === undefined ? null : `wait=${waitSecs}`;
    expect(headers.get("preference-applied")).toBe(expected);
  }
});

test("a 304 has no body, and the ETag and Vary that the 200 would have had", async () => {
  const response = get({ "accept-encoding": "zstd", "if-none-match": `"${list.hash}"` });
  expect(response.status).toBe(304);
  expect(await response.text()).toBe("");
  expect(response.headers.get("etag")).toBe(`"${list.hash}-zstd"`);
  expect(response.headers.get("vary")).toBe("Accept-Encoding");
  expect(response.headers.get("content-encoding")).toBeNull();
});

test.each([
  ["invalid", 400],
  ["too-large", 413],
  ["unsupported-media-type", 415],
  ["unavailable", 503],
] as const)("an error of the kind %s is a %d with its reason", async (code, status) => {
  const response = responseOf(errorAnswer(new ServiceError(code, "the reason")));
  expect(response.status).toBe(status);
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect(await response.text()).toBe("the reason");
});

test("an error that nobody thought of says no more than that it happened", async () => {
  for (const error of [new TypeError("secret"), "secret", undefined]) {
    const response = responseOf(errorAnswer(error));
    expect(response.status).toBe(500);
    expect(await response.text()).toBe("internal error");
  }
});

test("a reason is one clean line of at most 500 characters", async () => {
  const { body } = refusal(400, `a\nb\u0000${"x".repeat(10_000)}`);
  const text = String(body);
  expect(text).toHaveLength(500);
  expect(text).toStartWith("a\\u{a}b\\u{0}xxx");
});
