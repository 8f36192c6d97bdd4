import fc from "fast-check";
import type { Endpoint, EndpointSlice } from "../../src/kubernetes/slice-api.ts";
import type { SliceIndex } from "../../src/kubernetes/slices.ts";
import { makeSlice, mcsLabels } from "./slices.ts";

/** Names that begin alike and are made of each other, so that they are easily mistaken. */
export const CLUSTERS = ["a", "a-b", "a-b-a", "b"] as const;
export const NAMESPACES = ["dynamo", "other"] as const;
export const DGD_NAMES = ["x", "a-b"] as const;
export const SERVICES = [
  "x-pool-relay",
  "a-b-pool-relay",
  "x-frontend",
  "a-b-frontend",
  "global-router",
] as const;

const cluster = fc.constantFrom(...CLUSTERS);
const namespace = fc.constantFrom(...NAMESPACES);
const service = fc.constantFrom(...SERVICES, "unrelated");
const address = fc.constantFrom("10.0.0.1", "10.0.0.2", "2001:DB8::1", "2001:db8::2", "no address");

const endpoint: fc.Arbitrary<Endpoint> = fc.record(
  {
    addresses: fc.array(address, { minLength: 1, maxLength: 2 }),
    conditions: fc.constantFrom(null, {}, { ready: true }, { ready: false }, { ready: null }),
    hostname: fc.constantFrom(null, "p", "q"),
    targetRef: fc.constantFrom(null, { kind: "Pod", name: "p" }, { kind: "Node", name: "n" }),
  },
  { requiredKeys: ["addresses"] },
);

const port = fc.record(
  {
    name: fc.constantFrom(null, "", "http", "https", "grpc"),
    port: fc.constantFrom(null, 80, 443, 8000),
    appProtocol: fc.constantFrom(null, "http", "https", "HTTPS"),
  },
  { requiredKeys: [] },
);

const content = fc.record(
  {
    addressType: fc.constantFrom("IPv4", "IPv4", "IPv6", "FQDN"),
    endpoints: fc.option(fc.array(endpoint, { maxLength: 3 })),
    ports: fc.option(fc.array(port, { maxLength: 2 })),
  },
  { requiredKeys: ["addressType"] },
);

/** A slice that may be in either mode's form, or in none; few names, so that many meet. */
export const anySlice: fc.Arbitrary<EndpointSlice> = fc
  .record({
    form: fc.constantFrom("mcs", "generated", "hand-made", "hand-made", "dispatched", "own"),
    cluster,
    namespace,
    service,
    name: fc.constantFrom("one", "two"),
    content,
  })
  .map(({ form, cluster, namespace, service, name, content }) => {
    const made = (
      name: string,
      labels: Record<string, string>,
      annotations?: Record<string, string>,
    ) =>
      makeSlice({
        name,
        namespace,
        labels,
        ...(annotations === undefined ? {} : { annotations }),
        ...content,
      });
    switch (form) {
      case "mcs":
        return made(name, mcsLabels(cluster, service));
      case "generated":
        return made(`imported-${cluster}-${service}-x7k2m`, {
          "kubernetes.io/service-name": `derived-${service}`,
        });
      case "hand-made":
        return made(`imported-${cluster}-${name}`, {
          "kubernetes.io/service-name": `derived-${service}`,
        });
      case "dispatched":
        return made(
          name,
          {
            "kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by":
              "endpointslice-dispatch-controller.karmada.io",
          },
          { "endpointslice.karmada.io/provision-cluster": cluster },
        );
      default:
        return made(name, { "kubernetes.io/service-name": service });
    }
  });

export type SliceEvent =
  | { readonly type: "put" | "remove"; readonly slice: EndpointSlice }
  | { readonly type: "replace"; readonly slices: readonly EndpointSlice[] };

export const anySliceEvent: fc.Arbitrary<SliceEvent> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom("put"), slice: anySlice }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom("remove"), slice: anySlice }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom("replace"),
      slices: fc.uniqueArray(anySlice, { maxLength: 6, selector: nameOf }),
    }),
  },
);

export function nameOf({ metadata: { namespace, name } }: EndpointSlice): string {
  return `${namespace}/${name}`;
}

/** The slices there are after some events, as simply as can be. */
export class SliceModel {
  readonly #slices = new Map<string, EndpointSlice>();

  apply(event: SliceEvent): void {
    switch (event.type) {
      case "put":
        this.#slices.set(nameOf(event.slice), event.slice);
        return;
      case "remove":
        this.#slices.delete(nameOf(event.slice));
        return;
      case "replace":
        this.#slices.clear();
        for (const slice of event.slices) this.#slices.set(nameOf(slice), slice);
    }
  }

  slices(): EndpointSlice[] {
    return [...this.#slices.values()];
  }
}

export function send(
  sink: Pick<SliceIndex, "put" | "remove" | "replace">,
  event: SliceEvent,
): void {
  if (event.type === "replace") sink.replace(event.slices);
  else sink[event.type](event.slice);
}
