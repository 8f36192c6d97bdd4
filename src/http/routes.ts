import type { Directory } from "../directory/directory.ts";
import type { Registration } from "../pools/pool.ts";
import { RecentTexts } from "../pools/recent-texts.ts";
import { limits } from "../runtime/limits.ts";
import { readJsonBody } from "./body.ts";
import { listResponse, refusal } from "./respond.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** What each path answers, whatever the method. */
export type Routes = Readonly<Record<string, Handler>>;

export interface RoutesOptions {
  readonly directory: Directory;
  readonly heartbeatIntervalSecs: number;
  readonly leaseDurationSecs: number;
  /** Whether the service is about to end. */
  readonly isStopping: () => boolean;
}

/** What the service answers on each path. */
export function createRoutes(options: RoutesOptions): Routes {
  const { directory } = options;
  const registered = JSON.stringify({
    heartbeat_interval_s: options.heartbeatIntervalSecs,
    lease_duration_s: options.leaseDurationSecs,
  });
  const parse = registrationParser();
  return {
    "/pools": byMethod({
      GET: (request) => listResponse(request, directory.pools()),
      async POST(request) {
        await directory.register(await parse(await readJsonBody(request)));
        return new Response(registered, { headers: { "Content-Type": "application/json" } });
      },
    }),
    "/routers": byMethod({
      GET: (request) => listResponse(request, directory.routers()),
    }),
    "/healthz": byMethod({
      GET() {
        const isHealthy = directory.isReady() && !options.isStopping();
        return new Response(null, { status: isHealthy ? 200 : 503 });
      },
    }),
  };
}

/**
 * What makes a registration of a body's text. Relays send the same text again and again, and the
 * same text says the same, so what was found valid is remembered. The schema is loaded with the
 * first heartbeat, for it is most of what a start would cost.
 */
function registrationParser(): (text: string) => Promise<Registration> {
  const parsed = new RecentTexts<Registration>(limits.parsedChars);
  return async (text) => {
    const known = parsed.get(text);
    if (known !== undefined) return known;
    const { parseRegistration } = await import("../pools/schema.ts");
    const registration = parseRegistration(text);
    parsed.set(text, registration);
    return registration;
  };
}

/**
 * Answers each method with its handler, `HEAD` with that of `GET` (the server leaves the body out),
 * and any other with 405. Bun's own table of methods would hand those on to the answer for unknown
 * paths.
 */
function byMethod(handlers: { readonly GET: Handler; readonly POST?: Handler }): Handler {
  const allowed = ["GET", "HEAD", ...(handlers.POST === undefined ? [] : ["POST"])].join(", ");
  return (request) => {
    switch (request.method) {
      case "GET":
      case "HEAD":
        return handlers.GET(request);
      case "POST":
        if (handlers.POST !== undefined) return handlers.POST(request);
    }
    return refusal(405, `this path takes ${allowed}`, { Allow: allowed });
  };
}

/** The answer for a path that is none of `routes`. */
export function notFound(routes: Routes): Response {
  return refusal(404, `there is nothing at this path; there is ${Object.keys(routes).join(", ")}`);
}
