import type { Directory } from "../directory/directory.ts";
import type { Waiters } from "../directory/waiters.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Answer } from "./answer.ts";
import type { BodyReader } from "./body.ts";
import type { Explainer, ServiceFacts } from "./explain.ts";
import { refusal } from "./respond.ts";
import { listHandler } from "./waiting.ts";

/** What a handler may ask of the server. */
export interface RequestServer {
  /** From now on, the request's connection is cut where it is silent for so many seconds. */
  timeout(request: Request, seconds: number): void;
}

export type Handler = (request: Request, server: RequestServer) => Answer | Promise<Answer>;

/** A handler for any method, which it is told: a `Request` takes its time to say it. */
export type MethodHandler = (
  request: Request,
  server: RequestServer,
  method: string,
) => Answer | Promise<Answer>;

/** What each path answers. */
export type Routes = Readonly<Record<string, MethodHandler>>;

export interface RoutesOptions {
  readonly directory: Directory;
  readonly waiters: Waiters;
  readonly bodies: BodyReader;
  readonly heartbeatIntervalSecs: number;
  readonly leaseDurationSecs: number;
  /** All metrics as of now, as text. */
  readonly metrics: () => Promise<string>;
  /** Whether the service is about to end. */
  readonly isStopping: () => boolean;
  readonly service: ServiceFacts;
  readonly clock: Clock;
}

/** Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats). */
const EXPOSITION_HEADERS = new Headers({
  "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
});
const JSON_HEADERS = new Headers({ "Content-Type": "application/json" });

/** What the service answers on each path. */
export function createRoutes(options: RoutesOptions): Routes {
  const { directory, waiters, bodies } = options;
  const registered: Answer = {
    status: 200,
    headers: JSON_HEADERS,
    body: JSON.stringify({
      heartbeat_interval_s: options.heartbeatIntervalSecs,
      lease_duration_s: options.leaseDurationSecs,
    }),
  };
  return {
    "/pools": byMethod({
      GET: listHandler(waiters.pools),
      async POST(request) {
        const text = await bodies.readJson(request);
        if (!directory.renew(text)) {
          // Loaded with the first heartbeat that has to be parsed: a start doesn't need it.
          const { parseRegistration, refusalOf } = await import("../pools/parse.ts");
          const registration = parseRegistration(text);
          if (registration === undefined) throw await refusalOf(text);
          await directory.register(registration, text);
        }
        return registered;
      },
    }),
    "/routers": byMethod({
      GET: listHandler(waiters.routers),
    }),
    "/explain": byMethod({ GET: explainHandler(options) }),
    "/healthz": byMethod({
      GET() {
        const isHealthy = directory.isReady() && !options.isStopping();
        return { status: isHealthy ? 200 : 503, headers: {}, body: null };
      },
    }),
    "/metrics": byMethod({
      GET: async () => ({
        status: 200,
        headers: EXPOSITION_HEADERS,
        body: await options.metrics(),
      }),
    }),
    "/": byMethod({
      async GET(request) {
        const { pageAnswer } = await import("./page/page.ts");
        return pageAnswer(request);
      },
    }),
  };
}

/** Loads what explains when it is first asked to, and keeps that: there has to be only one. */
function explainHandler(options: RoutesOptions): Handler {
  let explainer: Promise<Explainer> | undefined;
  return async (request) => {
    explainer ??= import("./explain.ts").then(({ Explainer }) => new Explainer(options));
    return (await explainer).answer(request);
  };
}

/**
 * Answers each method with its handler, `HEAD` with that of `GET` (the server leaves the body out),
 * and any other with 405. Bun's own table of methods would hand those on to the answer for unknown
 * paths.
 */
function byMethod(handlers: { readonly GET: Handler; readonly POST?: Handler }): MethodHandler {
  const allowed = ["GET", "HEAD", ...(handlers.POST === undefined ? [] : ["POST"])].join(", ");
  return (request, server, method) => {
    switch (method) {
      case "GET":
      case "HEAD":
        return handlers.GET(request, server);
      case "POST":
        if (handlers.POST !== undefined) return handlers.POST(request, server);
    }
    return refusal(405, `this path takes ${allowed}`, { Allow: allowed });
  };
}

/** The answer for a path that is none of `routes`. */
export function notFound(routes: Routes): Answer {
  return refusal(404, `there is nothing at this path; there is ${Object.keys(routes).join(", ")}`);
}
