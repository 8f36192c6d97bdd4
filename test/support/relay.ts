import { expect } from "bun:test";

/** The key of a pool on the wire. */
export interface WireKey {
  readonly cluster_id: string;
  readonly namespace: string;
  readonly dgd_name: string;
}

/** A pool as `GET /pools` shows it. */
export interface ListedPool {
  readonly key: WireKey;
  readonly location: {
    readonly region: string;
    readonly availability_zone: string | null;
    readonly datacenter: string | null;
  };
  readonly model: string;
  readonly capabilities: readonly string[];
  readonly frontends: readonly string[];
  readonly capacity: readonly { readonly sku: string; readonly workers: number }[];
  readonly relay_identities: readonly string[];
}

export interface PoolList {
  readonly pools: readonly ListedPool[];
  readonly complete: boolean;
}

let keys = 0;

/** A key that no other test has. */
export function freshKey(overrides: Partial<WireKey> = {}): WireKey {
  keys += 1;
  return {
    cluster_id: `cluster-${process.pid}-${keys}`,
    namespace: "dynamo",
    dgd_name: "mocker",
    ...overrides,
  };
}

/** A registration that is right but for what a test puts in it. */
export function registration(overrides: Readonly<Record<string, unknown>> = {}) {
  return {
    key: freshKey(),
    location: { region: "us-west-2", availability_zone: "us-west-2a", datacenter: null },
    model: "Qwen/Qwen3-0.6B",
    capabilities: ["aggregated"],
    frontends: ["http://10.43.1.2:8000/"],
    capacity: [{ sku: "H100", workers: 8 }],
    ...overrides,
  };
}

/** A `POST /pools` with a body as it stands. */
export function postText(
  url: string,
  body: NonNullable<RequestInit["body"]>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}/pools`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body,
  });
}

/** A `POST /pools` of any value. */
export function post(url: string, body: unknown): Promise<Response> {
  return postText(url, JSON.stringify(body));
}

/** Registers a pool, as a Pool Relay does with each heartbeat. */
export async function register(url: string, body: unknown): Promise<void> {
  const response = await post(url, body);
  const text = await response.text();
  if (response.status !== 200) {
    throw new Error(`POST /pools answered ${response.status}: ${text} for ${brief(body)}`);
  }
}

/** Registers a great many pools, each with 200, over a few connections. */
export async function registerMany(url: string, bodies: Iterable<string>): Promise<void> {
  const { hostname, port } = new URL(url);
  const waiting = bodies[Symbol.iterator]();
  const connection = async () => {
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    let answer = "";
    const sendNext = (socket: Bun.Socket) => {
      const { value, done: isOver } = waiting.next();
      if (isOver === true) socket.end();
      else socket.write(postBytes(value));
    };
    await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: sendNext,
        data(socket, chunk) {
          answer += chunk.toString("latin1");
          if (!answer.endsWith("}")) return;
          if (!answer.startsWith("HTTP/1.1 200 ")) reject(new Error(answer));
          answer = "";
          sendNext(socket);
        },
        close: () => resolve(),
        error: (_, error) => reject(error),
      },
    });
    await done;
  };
  await Promise.all(Array.from({ length: 16 }, connection));
}

/** A `POST /pools` as the bytes of a request. */
export function postBytes(body: string, headers = `Content-Length: ${Buffer.byteLength(body)}`) {
  return `POST /pools HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`;
}

export async function getPools(url: string): Promise<PoolList> {
  const response = await fetch(`${url}/pools`);
  expect(response.status).toBe(200);
  return poolList(await response.text());
}

export function poolList(body: string): PoolList {
  // What is not of this form fails the test that looks into it.
  return JSON.parse(body) as PoolList;
}

/** What the list says of one pool. */
export async function getPool(url: string, key: WireKey): Promise<ListedPool | undefined> {
  return find((await getPools(url)).pools, key);
}

export function find<T extends { readonly key: WireKey }>(
  pools: readonly T[],
  key: WireKey,
): T | undefined {
  return pools.find((pool) => Bun.deepEquals(pool.key, key));
}

/** The body of `GET /pools` as it was sent, and what it is known by. */
export async function getList(
  url: string,
): Promise<{ readonly body: string; readonly etag: string }> {
  const response = await fetch(`${url}/pools`, { headers: { "Accept-Encoding": "identity" } });
  return { body: await response.text(), etag: response.headers.get("etag") ?? "" };
}

/** A value in a line, for the message of a failed test. */
export function brief(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}… (${text.length})` : text;
}

/**
 * Checks an error that the service itself made: its status, and one line of plain text with all of
 * `words` in it.
 */
export async function expectRefusal(
  response: Response,
  status: number,
  words: readonly string[],
  input: unknown = "",
): Promise<void> {
  const reason = await response.text();
  const label = `${brief(input)} was answered ${response.status} ${brief(reason)}`;
  expect(response.status, label).toBe(status);
  expect(response.headers.get("content-type"), label).toBe("text/plain; charset=utf-8");
  expectOneLine(reason, label);
  for (const word of words) expect(reason, label).toContain(word);
}

/** A reason for people: a line that is neither empty nor long, with nothing that a terminal obeys. */
export function expectOneLine(reason: string, label = brief(reason)): void {
  expect(reason, label).not.toBe("");
  expect(reason.length, label).toBeLessThanOrEqual(500);
  expect(reason, label).not.toMatch(/\p{Cc}/u);
  expect(reason, label).not.toMatch(/^\s*<|\bat .*:\d+:\d+|node_modules/);
}
