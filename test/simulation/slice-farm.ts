import type { Endpoint, EndpointSlice } from "../../src/kubernetes/slice-api.ts";
import { makeSlice, mcsLabels } from "../support/slices.ts";
import type { ApiServer } from "./api-server.ts";
import type { Plan, PoolPlan, SliceChange } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";

/** A Service whose endpoints are imported, in one slice or in two. */
interface Service {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  /** Whether its slices are a dispatcher's, in karmada mode. */
  readonly isDispatched: boolean;
  readonly halves: [readonly Endpoint[], readonly Endpoint[]];
}

/** Imports the slices of all pools and routers, and changes them as the plan says. */
export class SliceFarm {
  readonly #mode: Plan["mode"];
  readonly #server: ApiServer;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #services: readonly Service[];
  #addresses = 0;

  constructor(plan: Plan, server: ApiServer, scheduler: Scheduler, random: Random) {
    this.#mode = plan.mode;
    this.#server = server;
    this.#scheduler = scheduler;
    this.#random = random;
    this.#services = plan.pools.flatMap((pool) => servicesOf(pool));
    for (const service of this.#services) {
      if (random.chance(0.9)) this.#fill(service);
    }
  }

  /** Changes the slices of a pool's relays, of its frontends, or of its cluster's routers. */
  change({ name, cluster, namespace }: PoolPlan, how: SliceChange): void {
    const service = this.#random.pick(
      this.#services.filter((other) => other.cluster === cluster && isOf(other, name, namespace)),
    );
    switch (how) {
      case "other endpoints":
      case "restore":
        this.#fill(service);
        return;
      case "none ready":
        service.halves.forEach((endpoints, half) => {
          service.halves[half] = endpoints.map((one) => ({ ...one, conditions: { ready: false } }));
        });
        this.#publish(service, [0, 1]);
        return;
      case "split": {
        const all = service.halves.flat();
        service.halves[0] = all.slice(0, all.length >> 1);
        service.halves[1] = all.slice(all.length >> 1);
        this.#publish(service, this.#random.shuffled([0, 1]));
        return;
      }
      case "merge":
        service.halves[0] = service.halves.flat();
        service.halves[1] = [];
        this.#publish(service, this.#random.shuffled([0, 1]));
        return;
      case "relabel":
        this.#relabel(service);
        return;
      case "remove":
        service.halves[0] = [];
        service.halves[1] = [];
        this.#publish(service, [0, 1]);
    }
  }

  /** Gives a Service endpoints that it has not had. */
  #fill(service: Service): void {
    const endpoints = (least: number) =>
      Array.from({ length: this.#random.int(least, 2) }, () => this.#endpoint());
    service.halves[0] = endpoints(1);
    service.halves[1] = endpoints(0);
    this.#publish(service, [0, 1]);
  }

  /** Makes a slice another Service's, under the name that it has. */
  #relabel(service: Service): void {
    const slice = this.#sliceOf(service, 0);
    const other = this.#sliceOf(this.#random.pick(this.#services), 0);
    const { labels = null, annotations = null } = other.metadata;
    this.#server.put({ ...slice, metadata: { ...slice.metadata, labels, annotations } });
  }

  /** Writes slices one after the other, as a controller does. */
  #publish(service: Service, halves: readonly number[]): void {
    let afterMs = 0;
    for (const half of halves) {
      const slice = this.#sliceOf(service, half);
      const { namespace, name } = slice.metadata;
      this.#scheduler.in(afterMs, () => {
        if (slice.endpoints?.length === 0) this.#server.remove(`${namespace}/${name}`);
        else this.#server.put(slice);
      });
      afterMs += this.#random.int(0, 1500);
    }
  }

  #endpoint(): Endpoint {
    this.#addresses += 1;
    const number = this.#addresses;
    return {
      addresses: [
        this.#random.chance(0.2)
          ? `2001:DB8::${number.toString(16)}`
          : `10.0.${number >> 8}.${number & 255}`,
      ],
      conditions: { ready: this.#random.pick([true, true, null, false]) },
      targetRef: { kind: "Pod", name: `pod-${number % 5}` },
    };
  }

  #sliceOf(service: Service, half: number): EndpointSlice {
    const { cluster, namespace, name } = service;
    const content = {
      namespace,
      endpoints: service.halves[half] ?? [],
      ports: [{ name: "http", port: 8000 }],
    };
    if (this.#mode === "mcs") {
      const labels = mcsLabels(cluster, name);
      return makeSlice({ name: `${name}-${cluster}-${half}`, labels, ...content });
    }
    if (service.isDispatched) {
      return makeSlice({
        name: `${cluster}-${name}-${half}`,
        labels: {
          "kubernetes.io/service-name": name,
          "endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io",
        },
        annotations: { "endpointslice.karmada.io/provision-cluster": cluster },
        ...content,
      });
    }
    return makeSlice({
      // A name that was generated, and one that was made by hand.
      name: `imported-${cluster}-${half === 0 ? `${name}-x7k2m` : `${name}-more`}`,
      labels: { "kubernetes.io/service-name": `derived-${name}` },
      ...content,
    });
  }
}

function servicesOf({ name, cluster, namespace }: PoolPlan): Service[] {
  const isDispatched = Number(name.slice(1)) % 3 === 0;
  const service = (service: string, inNamespace = namespace): Service => ({
    cluster,
    namespace: inNamespace,
    name: service,
    isDispatched,
    halves: [[], []],
  });
  return [
    service(`${name}-pool-relay`),
    service(`${name}-frontend`),
    service("global-router", "dynamo"),
  ];
}

function isOf(service: Service, pool: string, namespace: string): boolean {
  if (service.name === "global-router") return true;
  return service.name.startsWith(`${pool}-`) && service.namespace === namespace;
}
