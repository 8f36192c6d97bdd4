import { compareText } from "../pools/pool.ts";
import { Representation } from "./representation.ts";

/** A replica of the Global Router, in the fields and their order of the wire. */
export interface Router {
  readonly replica: string;
  readonly url: string;
}

/** A port by its name or its number; undefined, the only one. */
export type RouterPort = string | number | undefined;

/** The Service that the routers of every cluster are behind. */
export interface RouterService {
  readonly namespace: string;
  readonly service: string;
  /** The port that Pool Relays connect to. */
  readonly port: RouterPort;
}

/** The body of `GET /routers`. */
export function routersRepresentation(routers: readonly Router[]): Representation {
  const sorted = routers
    .map(({ replica, url }) => ({ replica, url }))
    .sort((a, b) => compareText(a.replica, b.replica) || compareText(a.url, b.url));
  return new Representation(JSON.stringify({ routers: sorted }));
}
