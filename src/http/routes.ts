import type { Directory } from "../directory/directory.ts";
import type { Registration } from "../pools/pool.ts";
import { readJsonBody } from "./body.ts";
import { listResponse, refusal } from "./respond.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** What each path answers, whatever the method. */
export type Routes = Readonly<Record<string, Handler>>;

export interface RoutesOptions {
  readonly directory: Directory;
  readonly heartbeatIntervalSecs: number;
  readonly leaseDurationSecs: number;
  /** Whether to tell load balancers to send requests here. */
  readonly isHealthy: () => boolean;
}

/** What the service answers on each path. */
export function createRoutes(options: RoutesOptions): Routes {
  const { directory } = options;
  const registered = JSON.stringify({
    heartbeat_interval_s: options.heartbeatIntervalSecs,
    lease_duration_s: options.leaseDurationSecs,
  });
  return {
    "/pools": byMethod({
      GET: (request) => listResponse(request, directory.pools()),
      async POST(request) {
        await directory.register(await parseRegistration(await readJsonBody(request)));
        return new Response(registered, { headers: { "Content-Type": "application/json" } });
      },
    }),
    "/routers": byMethod({
      GET: (request) => listResponse(request, directory.routers()),
    }),
    "/healthz": byMethod({
      GET: () => new Response(null, { status: options.isHealthy() ? 200 : 503 }),
    }),
  };
}

/** Loads the schema with the first heartbeat: it is most of what a start would cost. */
async function parseRegistration(body: Uint8Array): Promise<Registration> {
  const schema = await import("../pools/schema.ts");
  return schema.parseRegistration(body);
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
