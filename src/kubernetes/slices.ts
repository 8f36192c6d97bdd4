import { sortKey } from "../pools/pool.ts";
import type { Log } from "../runtime/log.ts";
import { type ReadyEndpoints, readyEndpointsOf, sameEndpoints } from "./endpoints.ts";
import { type LeftOut, LeftOutSlices } from "./left-out.ts";
import { LiveClusters } from "./live-clusters.ts";
import type { LeftOutReason, OwnershipRule } from "./ownership.ts";
import type { SliceSink } from "./reflector.ts";
import { dgdNameOf, type ServiceKey } from "./services.ts";
import type { EndpointSlice } from "./slice-api.ts";

export interface SliceIndexOptions {
  readonly rule: OwnershipRule;
  /** The one Service that counts besides those of pools, and the only one whose pods are kept. */
  readonly routers: { readonly namespace: string; readonly service: string };
  /**
   * Hears of each Service whose Ready endpoints, or their ports, may have changed: once, after all
   * that happened at the same time has been taken in, the Service that lost a slice first.
   */
  readonly changed: (service: ServiceKey) => void;
  readonly log: Log;
}

interface Service {
  readonly key: ServiceKey;
  readonly slices: Slice[];
}

/** What is kept of a slice that counts. */
interface Slice extends ReadyEndpoints {
  readonly service: Service;
}

/** A slice that may be another cluster's as soon as clusters come or go. */
interface HandMade {
  /** The cluster, a dash and more. */
  readonly name: string;
  readonly namespace: string;
  readonly service: string;
  readonly endpoints: ReadyEndpoints | undefined;
}

/**
 * The Ready endpoints of all slices, by Service. An event costs as much as its own slice is large,
 * however many others there are.
 */
export class SliceIndex implements SliceSink {
  readonly #options: SliceIndexOptions;
  /** Every slice by its `namespace/name`: what is kept of it, or why it is left out. */
  readonly #slices = new Map<string, Slice | LeftOutReason>();
  readonly #services = new Map<string, Service>();
  readonly #handMade = new Map<string, HandMade>();
  readonly #clusters = new LiveClusters();
  readonly #leftOut: LeftOutSlices;
  /** The Services that the listener has yet to hear of. */
  readonly #changed = new Set<Service>();

  constructor(options: SliceIndexOptions) {
    this.#options = options;
    this.#leftOut = new LeftOutSlices(options.log);
  }

  replace(slices: readonly EndpointSlice[]): void {
    const present = new Set<string>();
    for (const slice of slices) present.add(this.#take(slice));
    for (const id of this.#slices.keys()) {
      if (!present.has(id)) this.#drop(id);
    }
    this.#tell();
  }

  put(slice: EndpointSlice): void {
    this.#take(slice);
    this.#tell();
  }

  remove(slice: EndpointSlice): void {
    this.#drop(idOf(slice));
    this.#tell();
  }

  /** A pool of this cluster is live: slices with hand-made names may be the cluster's. */
  addPool(cluster: string): void {
    if (this.#clusters.add(cluster)) this.#matchAgain(cluster);
  }

  /** A pool of this cluster that was added is live no more. */
  removePool(cluster: string): void {
    if (this.#clusters.remove(cluster)) this.#matchAgain(cluster);
  }

  /** The Ready endpoints of a Service as of now, slice by slice; empty where none is imported. */
  endpointsOf(service: ServiceKey): readonly ReadyEndpoints[] {
    return this.#services.get(serviceId(service))?.slices ?? [];
  }

  /** The Services that slices count for. May be walked bit by bit while they come and go. */
  *services(): Generator<ServiceKey> {
    for (const { key } of this.#services.values()) yield key;
  }

  /** How many slices there are, by what became of them. */
  counts(): { readonly used: number; readonly leftOut: Readonly<Record<LeftOutReason, LeftOut>> } {
    const leftOut = this.#leftOut.counts();
    const unused = Object.values(leftOut).reduce((sum, { count }) => sum + count, 0);
    return { used: this.#slices.size - unused, leftOut };
  }

  /** Takes in what a slice says now, and returns its id. */
  #take(slice: EndpointSlice): string {
    const id = idOf(slice);
    const { namespace } = slice.metadata;
    const ownership = this.#options.rule.ownerOf(slice);
    this.#handMade.delete(id);
    if ("leftOut" in ownership) {
      this.#leaveOut(id, ownership.leftOut);
    } else if (slice.addressType === "FQDN") {
      this.#leaveOut(id, "fqdn");
    } else if ("handMade" in ownership) {
      const { name, service } = ownership.handMade;
      const endpoints = this.#read(slice, service);
      this.#handMade.set(id, { name, namespace, service, endpoints });
      this.#match(id);
    } else {
      const { cluster, service } = ownership;
      this.#place(id, { cluster, namespace, service }, this.#read(slice, service));
    }
    return id;
  }

  /** What is to be kept of a slice of `service`; undefined where that is of no interest. */
  #read(slice: EndpointSlice, service: string): ReadyEndpoints | undefined {
    const { routers } = this.#options;
    if (service === routers.service && slice.metadata.namespace === routers.namespace) {
      return readyEndpointsOf(slice, { withPods: true });
    }
    if (dgdNameOf(service) === undefined) return undefined;
    return readyEndpointsOf(slice, { withPods: false });
  }

  /** Finds the cluster of a slice with a hand-made name among those that are live. */
  #match(id: string): void {
    const handMade = this.#handMade.get(id);
    if (handMade === undefined) return;
    const { name, namespace, service, endpoints } = handMade;
    const cluster = this.#clusters.longestIn(name);
    if (cluster === undefined) this.#leaveOut(id, "unknown-cluster");
    else this.#place(id, { cluster, namespace, service }, endpoints);
  }

  #matchAgain(cluster: string): void {
    for (const [id, { name }] of this.#handMade) {
      if (name.startsWith(`${cluster}-`)) this.#match(id);
    }
    this.#tell();
  }

  #place(id: string, key: ServiceKey, endpoints: ReadyEndpoints | undefined): void {
    if (endpoints === undefined) {
      this.#leaveOut(id, "other-service");
      return;
    }
    const service = this.#service(key);
    const known = this.#slices.get(id);
    if (typeof known === "object" && known.service === service && sameEndpoints(known, endpoints)) {
      return;
    }
    this.#detach(id, known);
    const slice = { ...endpoints, service };
    this.#slices.set(id, slice);
    service.slices.push(slice);
    this.#changed.add(service);
  }

  #leaveOut(id: string, reason: LeftOutReason): void {
    const known = this.#slices.get(id);
    if (known === reason) return;
    this.#detach(id, known);
    this.#slices.set(id, reason);
    this.#leftOut.add(id, reason);
  }

  #drop(id: string): void {
    this.#detach(id, this.#slices.get(id));
    this.#slices.delete(id);
    this.#handMade.delete(id);
    this.#leftOut.forget(id);
  }

  #detach(id: string, known: Slice | LeftOutReason | undefined): void {
    if (typeof known === "string") this.#leftOut.delete(id, known);
    if (typeof known !== "object") return;
    const { service } = known;
    service.slices.splice(service.slices.indexOf(known), 1);
    this.#changed.add(service);
  }

  #service(key: ServiceKey): Service {
    const id = serviceId(key);
    const known = this.#services.get(id);
    if (known !== undefined) return known;
    const service: Service = { key, slices: [] };
    this.#services.set(id, service);
    return service;
  }

  /** Tells the listener and the log, now that everything is in its place. */
  #tell(): void {
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const { key, slices } of changed) {
      if (slices.length === 0) this.#services.delete(serviceId(key));
    }
    for (const { key } of changed) this.#options.changed(key);
    this.#leftOut.report();
  }
}

function idOf({ metadata: { namespace, name } }: EndpointSlice): string {
  return `${namespace}/${name}`;
}

/** One string for a Service, whatever characters its parts have. */
function serviceId({ cluster, namespace, service }: ServiceKey): string {
  return sortKey({ cluster_id: cluster, namespace, dgd_name: service });
}
