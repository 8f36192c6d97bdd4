import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseRegistration } from "../../src/pools/parse.ts";
import { sourceCommand } from "../support/dynamodb.ts";
import { FUZZ_DEADLINE_MS, fuzz, mutatedBytes, mutatedValues } from "../support/fuzz.ts";
import { RawConnection, type RawResponse } from "../support/raw-http.ts";
import { expectOneLine, find, getPools, register, registration } from "../support/relay.ts";
import { endAll, Service } from "../support/service.ts";

const BODY = JSON.stringify(registration());
const POST = `POST /pools HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
const REQUESTS = [
  POST,
  POST + POST,
  `POST /pools HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  `POST /pools HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}`,
  'GET /pools HTTP/1.1\r\nHost: x\r\nIf-None-Match: W/"a", "b", *\r\nAccept-Encoding: zstd;q=0.5, gzip;q=1, *;q=0\r\nConnection: keep-alive\r\n\r\n',
  'GET /pools?a=b HTTP/1.1\r\nHost: [::1]:80\r\nIf-None-Match: "b"\r\nPrefer: respond-async, wait=0; a="b"\r\n\r\n',
  "GET http://x/routers HTTP/1.1\r\nHost: x\r\n\r\n",
  "HEAD /explain HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n",
  "GET /metrics HTTP/1.0\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
  "PUT /%2e%2e/pools%00 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
];

/** How long a connection that says nothing more is listened to. */
const SILENCE_MS = 15;

let service: Service;
let other: ReturnType<typeof registration>;
beforeAll(async () => {
  service = await Service.start(sourceCommand, {
    args: ["--lease-duration-secs", "60"],
  });
  other = registration({ key: { cluster_id: "other", namespace: "n", dgd_name: "d" } });
  await register(service.url, other);
});
afterAll(endAll);

/** Sends bytes in some pieces, and returns the answers that come soon. */
async function answersTo(pieces: readonly Uint8Array[]): Promise<RawResponse[]> {
  using connection = await RawConnection.open(service.url);
  for (const piece of pieces) {
    connection.send(piece);
    if (pieces.length > 1) await Bun.sleep(1);
  }
  const answers: RawResponse[] = [];
  for (;;) {
    const answer = connection.response({ deadlineMs: SILENCE_MS }).catch(() => undefined);
    const next = await answer;
    if (next === undefined) return answers;
    answers.push(next);
  }
}

function checkAnswer({ status, headers, body }: RawResponse): void {
  expect([100, 200, 304, 400, 404, 405, 413, 415, 431, 503, 505]).toContain(status);
  if (status < 400 || body.length === 0) return;
  expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expectOneLine(body.toString());
}

/** Checks that the service is as well as ever. */
async function checkService(): Promise<void> {
  expect(service.isRunning).toBe(true);
  expect(service.stderr).not.toContain("ERROR");
  const { pools } = await getPools(service.url);
  expect(find(pools, other.key)).toEqual({ ...other, relay_identities: [] });
  for (const pool of pools) {
    const { relay_identities, ...rest } = pool;
    expect(relay_identities).toEqual([]);
    const text = JSON.stringify(rest);
    // What is listed could be registered just so.
    expect(JSON.stringify(parseRegistration(text))).toBe(text);
  }
  await register(service.url, other);
}

describe("whatever bytes come", () => {
  test(
    "every answer is one of the reference, and the service goes on as before",
    () =>
      fuzz(
        "requests",
        fc.array(
          fc.tuple(mutatedBytes(REQUESTS), fc.array(fc.nat({ max: 400 }), { maxLength: 3 })),
          { minLength: 8, maxLength: 16 },
        ),
        60,
        async (requests) => {
          const answers = await Promise.all(
            requests.map(([bytes, cuts]) => answersTo(piecesOf(bytes, cuts))),
          );
          for (const answer of answers.flat()) checkAnswer(answer);
          await checkService();
        },
      ),
    FUZZ_DEADLINE_MS,
  );

  test(
    "a body is kept as it says, or is refused with a reason and changes nothing",
    () =>
      fuzz("bodies", anyBody, 300, async (bytes) => {
        const expected = readOf(bytes);
        const response = await fetch(`${service.url}/pools`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: bytes,
        });
        const text = await response.text();
        expect(response.status, text).toBe(expected === undefined ? 400 : 200);
        if (expected === undefined) {
          expectOneLine(text);
          return;
        }
        const { pools } = await getPools(service.url);
        expect(find(pools, expected.key)).toEqual({ ...expected, relay_identities: [] });
        expect(find(pools, other.key)).toEqual({ ...other, relay_identities: [] });
        await register(service.url, other);
      }),
    FUZZ_DEADLINE_MS,
  );
});

function piecesOf(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let rest = bytes;
  for (const cut of cuts) {
    pieces.push(rest.subarray(0, cut));
    rest = rest.subarray(cut);
  }
  return [...pieces, rest].filter(({ length }) => length > 0);
}

const anyBody = fc.oneof(
  mutatedBytes([BODY]),
  mutatedValues([JSON.parse(BODY)]).map((value) => Buffer.from(JSON.stringify(value) ?? "")),
);

function readOf(bytes: Uint8Array) {
  try {
    return parseRegistration(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    // It is no UTF-8.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
