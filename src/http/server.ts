import type { Clock } from "../runtime/clock.ts";
import { messageOf, ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";
import { OTHER, type RequestCounts } from "./request-counts.ts";
import { errorResponse } from "./respond.ts";
import { notFound, type Routes } from "./routes.ts";
import type { TlsPair } from "./tls.ts";

export interface ServerOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly tls: TlsPair | undefined;
  readonly routes: Routes;
  readonly requests: RequestCounts;
  readonly clock: Clock;
  readonly log: Log;
}

/** A server that is listening. */
export interface HttpServer {
  /** With the port that was taken where 0 was asked for. */
  readonly url: string;
  /**
   * Takes no more connections, and lets running requests finish, for 10 s at most.
   *
   * @returns whether they all did
   */
  drain(): Promise<boolean>;
}

/**
 * Starts to serve.
 *
 * @throws ServiceError `startup` when the address can't be had
 */
export function listen(options: ServerOptions): HttpServer {
  const { address, tls, routes, requests, clock, log } = options;
  const answerTo = (error: unknown) => {
    if (!(error instanceof ServiceError)) {
      const words = error instanceof Error ? error.stack : undefined;
      log.error("a request failed", { error: words ?? messageOf(error) });
    }
    return errorResponse(error);
  };
  const counted = Object.entries(routes).map(([route, handler]) => {
    return [route, requests.counted(route, handler, answerTo)] as const;
  });
  const server = attempt(address, () =>
    Bun.serve({
      hostname: address.host,
      port: address.port,
      // Said outright, since turning development mode off turns it on: two processes would share
      // the port without a word.
      reusePort: false,
      development: false,
      idleTimeout: limits.idleSecs,
      // Bodies are measured where they are read, with an answer that says so. Bun's own limit would
      // answer with a bare status.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      routes: Object.fromEntries(counted),
      fetch: requests.counted(OTHER, () => notFound(routes), answerTo),
      // What is thrown by no handler.
      error: answerTo,
      ...(tls === undefined ? {} : { tls: { cert: tls.cert, key: tls.key } }),
    }),
  );
  return {
    url: server.url.origin,
    async drain() {
      const finished = server.stop().then(() => true);
      const { promise: late, resolve } = Promise.withResolvers<boolean>();
      const cancel = clock.after(limits.drainMs, () => resolve(false));
      const inTime = await Promise.race([finished, late]);
      cancel();
      if (!inTime) server.stop(true);
      return inTime;
    },
  };
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the address is in use; stop what serves there, or take another with --listen",
  EADDRNOTAVAIL: "this machine has no such address; take another with --listen",
  EACCES: "the port needs more rights; take one above 1023 with --listen",
};

function attempt<T>({ host, port }: ServerOptions["address"], action: () => T): T {
  try {
    return action();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    throw new ServiceError(
      "startup",
      `cannot listen on ${where}: ${REASONS[code] ?? messageOf(error)}`,
    );
  }
}
