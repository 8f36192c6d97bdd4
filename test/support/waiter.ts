/** What a client that waited for a list got, and how long it waited. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  readonly afterMs: number;
}

/** The ETag of a list as it is now. */
export async function etagOf(list: string, options?: BunFetchRequestInit): Promise<string> {
  const response = await fetch(list, options);
  await response.bytes();
  return response.headers.get("etag") ?? "";
}

/** Asks for a list that differs from `etag`, and waits for that for up to `secs`. */
export async function waitFor(
  list: string,
  etag: string,
  secs: number,
  { headers, ...options }: BunFetchRequestInit = {},
): Promise<Answer> {
  const sentAtMs = performance.now();
  const response = await fetch(list, {
    headers: { "If-None-Match": etag, Prefer: `wait=${secs}`, ...headers },
    ...options,
  });
  const body = await response.text();
  const afterMs = performance.now() - sentAtMs;
  return { status: response.status, headers: response.headers, body, afterMs };
}

/** The bytes of a `GET /pools` that waits. */
export function waitBytes(etag: string, secs: number): string {
  return `GET /pools HTTP/1.1\r\nHost: x\r\nIf-None-Match: ${etag}\r\nPrefer: wait=${secs}\r\n\r\n`;
}
