import { BenchError } from "./errors.ts";
import { Generator } from "./generator.ts";
import type { Server } from "./server.ts";

export const CONNECTIONS = 32;

/** The requests that one side of a comparison gets. */
export interface Load {
  readonly server: Server;
  /** The current ETag of a client that has the list already. */
  readonly etag?: string;
  /** A file of JSON bodies to post in turn, one a line; `GET` where it is left out. */
  readonly bodiesPath?: string;
}

/** Where the load generator is. */
export function findWrk(): string {
  const path = Bun.which("wrk");
  if (path === null) {
    throw new BenchError("wrk, the load generator, is missing: install it (apt-get install wrk)");
  }
  return path;
}

/** Sends as many requests for `/pools` as the server takes, from one thread, for so many seconds. */
export function load({ server, etag, bodiesPath }: Load, seconds: number): Generator {
  const args = ["--threads", "1", "--connections", `${CONNECTIONS}`];
  // A generator that is held must not take that for a server's silence.
  args.push("--duration", `${seconds}s`, "--timeout", "30s");
  if (etag !== undefined) args.push("--header", `If-None-Match: ${etag}`);
  if (bodiesPath !== undefined) args.push("--script", `${import.meta.dir}/post.lua`);
  args.push(`${server.url}/pools`);
  if (bodiesPath !== undefined) args.push("--", bodiesPath);
  return new Generator(server, [findWrk(), ...args], (output) => {
    const requests = /^\s*(\d+) requests in /m.exec(output)?.[1];
    // Errors are answered quickly, and would pass for speed.
    if (requests === undefined || /Non-2xx|Socket errors/.test(output)) {
      throw new BenchError(`wrk failed on ${server.url}: ${output}`);
    }
    return Number(requests);
  });
}
