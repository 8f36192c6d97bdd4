import type { Clock } from "../runtime/clock.ts";
import { messageOf, ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";
import { responseOf } from "./answer.ts";
import { type Listener, Listeners } from "./listeners.ts";
import { OTHER, type RequestCounts, type Route } from "./request-counts.ts";
import { errorAnswer } from "./respond.ts";
import { notFound, type Routes } from "./routes.ts";

export interface ServerOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly tls: Bun.TLSOptions | undefined;
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
   * Serves new connections with `tls`, which it has been served with something else of before. Those
   * that are open end with the next answer on them.
   *
   * @throws ServiceError or Error when it can't; then it goes on as it was
   */
  replaceTls(tls: Bun.TLSOptions): Promise<void>;
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
    return errorAnswer(error);
  };
  const counted = Object.entries(routes).map(([route, handler]) => {
    return [route, requests.counted(route, handler, answerTo)] as const;
  });
  const handlers: Handlers = {
    routes: Object.fromEntries(counted),
    fetch: requests.counted(OTHER, () => notFound(routes), answerTo),
    // What is thrown outside of handlers, as in making a response of what they answer.
    error: (error) => responseOf(answerTo(error)),
  };
  const open = (port: number, reusePort: boolean, options: Bun.TLSOptions | undefined) =>
    Bun.serve({
      hostname: address.host,
      port,
      // Said outright, since turning development mode off turns it on: two processes would share
      // the port without a word.
      reusePort,
      development: false,
      idleTimeout: limits.idleSecs,
      // Bodies are measured where they are read, with an answer that says so. Bun's own limit would
      // answer with a bare status.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      ...handlers,
      ...(options === undefined ? {} : { tls: options }),
    });
  const server = attempt(address, () => open(address.port, false, tls));
  const listenerOf = (each: typeof server): Listener => ({
    retire: () => void each.reload(closing(handlers)),
    stop: (isForced) => each.stop(isForced),
  });
  const listeners = new Listeners(listenerOf(server), {
    clock,
    openSockets: async () => (await import("./listening-sockets.ts")).listeningSockets(),
  });
  const port = server.port ?? address.port;
  const scheme = tls === undefined ? "http" : "https";
  return {
    // Put together here: Bun's own is a `URL`, and the first of these takes a twentieth of the start.
    url: `${scheme}://${authorityOf({ ...address, port })}`,
    replaceTls: (other) => listeners.replace(() => listenerOf(open(port, true, other))),
    async drain() {
      const finished = listeners.stop().then(() => true);
      const { promise: late, resolve } = Promise.withResolvers<boolean>();
      const cancel = clock.after(limits.drainMs, () => resolve(false));
      const inTime = await Promise.race([finished, late]);
      cancel();
      if (!inTime) void listeners.stop(true);
      return inTime;
    },
  };
}

interface Handlers {
  readonly routes: Readonly<Record<string, Route>>;
  readonly fetch: Route;
  readonly error: (error: Error) => Response;
}

/** Handlers that have each connection closed behind their answer (RFC 9112, section 9.6). */
function closing({ routes, fetch, error }: Handlers): Handlers {
  const close = (response: Response) => {
    response.headers.set("Connection", "close");
    return response;
  };
  const closed = (handle: Route): Route => {
    return async (...request) => close(await handle(...request));
  };
  const closingRoutes = Object.entries(routes).map(([path, handle]) => {
    return [path, closed(handle)] as const;
  });
  return {
    routes: Object.fromEntries(closingRoutes),
    fetch: closed(fetch),
    error: (failure) => close(error(failure)),
  };
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the address is in use; stop what serves there, or take another with --listen",
  EADDRNOTAVAIL: "this machine has no such address; take another with --listen",
  EACCES: "the port needs more rights; take one above 1023 with --listen",
};

/** A host and port as they stand in a URL (RFC 3986, section 3.2). */
function authorityOf({ host, port }: ServerOptions["address"]): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function attempt<T>(address: ServerOptions["address"], action: () => T): T {
  try {
    return action();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // What the TLS library refuses of files that could be read one by one.
    if (code.startsWith("ERR_OSSL_")) {
      throw new ServiceError(
        "startup",
        `--tls-cert-path, --tls-key-path: these files can't be served with: ${messageOf(error)}`,
      );
    }
    throw new ServiceError(
      "startup",
      `cannot listen on ${authorityOf(address)}: ${REASONS[code] ?? messageOf(error)}`,
    );
  }
}
