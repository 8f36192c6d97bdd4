import { isIPv6Address } from "../kubernetes/addresses.ts";
import type { NumberedPort, ReadyEndpoints } from "../kubernetes/endpoints.ts";
import type { Clock } from "../runtime/clock.ts";
import { Cooldown } from "../runtime/cooldown.ts";
import type { Log } from "../runtime/log.ts";
import { endpointUrl, onlyPort } from "./endpoint-urls.ts";
import type { Representation } from "./representation.ts";
import { type Router, type RouterPort, routersRepresentation } from "./routers.ts";

export interface ImportedRoutersOptions {
  readonly port: RouterPort;
  readonly clock: Clock;
  readonly log: Log;
}

/** The routers that are imported, and the bytes of `GET /routers`. */
export class ImportedRouters {
  readonly #port: RouterPort;
  readonly #log: Log;
  readonly #cooldown: Cooldown;
  readonly #byCluster = new Map<string, readonly Router[]>();
  #representation = routersRepresentation([]);
  #isStale = false;

  constructor({ port, clock, log }: ImportedRoutersOptions) {
    this.#port = port;
    this.#log = log;
    this.#cooldown = new Cooldown(clock);
  }

  /** Takes what is imported of the router Service from one cluster for all there is. */
  put(cluster: string, slices: readonly ReadyEndpoints[]): void {
    this.#isStale = true;
    const routers = slices.flatMap((slice) => {
      const port = this.#portOf(slice.ports);
      if (port === undefined) this.#warn(cluster, slice);
      return port === undefined ? [] : replicasOf(cluster, slice, port);
    });
    if (routers.length === 0) this.#byCluster.delete(cluster);
    else this.#byCluster.set(cluster, preferIPv4(routers));
  }

  /** The body of `GET /routers`, the same object until its content changes. */
  representation(): Representation {
    if (this.#isStale) {
      const made = routersRepresentation([...this.#byCluster.values()].flat());
      if (made.hash !== this.#representation.hash) this.#representation = made;
      this.#isStale = false;
    }
    return this.#representation;
  }

  #portOf(ports: readonly NumberedPort[]): NumberedPort | undefined {
    if (this.#port === undefined) return onlyPort(ports);
    return ports.find(({ name, port }) => this.#port === name || this.#port === port);
  }

  #warn(cluster: string, { addresses, ports }: ReadyEndpoints): void {
    if (addresses.length === 0 || !this.#cooldown.restart()) return;
    const shown = ports.map(({ name, port }) => (name === "" ? port : `${name}:${port}`));
    this.#log.warn("routers are left out", {
      reason: this.#fault(ports),
      cluster,
      ports: shown.join(),
    });
  }

  #fault(ports: readonly NumberedPort[]): string {
    if (ports.length === 0) return "the router Service has no port";
    if (this.#port !== undefined) return "the router Service has no port that is --router-port";
    return "the router Service has several ports; set --router-port to one of them";
  }
}

/** A router, and whether its URL has an IPv6 address. */
interface Replica extends Router {
  readonly isIPv6: boolean;
}

function replicasOf(cluster: string, { addresses, pods }: ReadyEndpoints, port: NumberedPort) {
  return addresses.map((address, index): Replica => {
    const replica = `${cluster}/${pods[index] ?? address}`;
    return { replica, url: endpointUrl(address, port), isIPv6: isIPv6Address(address) };
  });
}

/**
 * Each replica by its IPv4 addresses, and by IPv6 only where it has no other: a Service of both
 * families has its pods in slices of either. Several slices may name an endpoint while it moves from
 * one to another, so repeats are left out.
 */
function preferIPv4(replicas: readonly Replica[]): Router[] {
  const haveIPv4 = new Set<string>();
  for (const { replica, isIPv6 } of replicas) if (!isIPv6) haveIPv4.add(replica);
  const routers = new Map<string, Router>();
  for (const { replica, url, isIPv6 } of replicas) {
    if (isIPv6 && haveIPv4.has(replica)) continue;
    routers.set(`${url} ${replica}`, { replica, url });
  }
  return [...routers.values()];
}
