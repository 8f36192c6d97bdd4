import type { Directory } from "../directory/directory.ts";
import type { Registration } from "../pools/pool.ts";
import { readJsonBody } from "./body.ts";
import { listResponse, refusal } from "./respond.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** Each path with a handler for each method. `HEAD` is answered from `GET` by the server. */
export type Routes = Readonly<Record<string, { readonly GET: Handler; readonly POST?: Handler }>>;

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
    "/pools": {
      GET: (request) => listResponse(request, directory.pools()),
      async POST(request) {
        await directory.register(await parseRegistration(await readJsonBody(request)));
        return new Response(registered, { headers: { "Content-Type": "application/json" } });
      },
    },
    "/routers": {
      GET: (request) => listResponse(request, directory.routers()),
    },
    "/healthz": {
      GET: () => new Response(null, { status: options.isHealthy() ? 200 : 503 }),
    },
  };
}

/** Loads the schema with the first heartbeat: it is most of what a start would cost. */
async function parseRegistration(body: Uint8Array): Promise<Registration> {
  const schema = await import("../pools/schema.ts");
  return schema.parseRegistration(body);
}

/** The answer to a request that no route takes. */
export function unrouted(routes: Routes, request: Request): Response {
  const path = pathOf(request.url);
  const handlers = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (handlers === undefined) {
    return refusal(
      404,
      `there is nothing at this path; there is ${Object.keys(routes).join(", ")}`,
    );
  }
  const allowed = ["HEAD", ...Object.keys(handlers)].sort().join(", ");
  return refusal(405, `this path takes ${allowed}`, { Allow: allowed });
}

/** The path that was asked for. With an odd Host header, Bun's `url` is the path alone. */
function pathOf(url: string): string {
  return (url.startsWith("/") ? url.split(/[?#]/, 1)[0] : URL.parse(url)?.pathname) ?? "";
}
