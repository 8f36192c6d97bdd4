import type { Endpoint, EndpointPort, EndpointSlice } from "../../src/kubernetes/slice-api.ts";

export interface SliceParts {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly annotations?: Readonly<Record<string, string>> | null;
  readonly addressType?: string;
  readonly endpoints?: readonly Endpoint[] | null;
  readonly ports?: readonly EndpointPort[] | null;
}

/** A slice in namespace `dynamo`, with what is given. */
export function makeSlice(parts: SliceParts = {}): EndpointSlice {
  const { name = "s", namespace = "dynamo", addressType = "IPv4", endpoints, ports } = parts;
  const metadata = {
    name,
    namespace,
    resourceVersion: "1",
    ...(parts.labels === undefined ? {} : { labels: parts.labels }),
    ...(parts.annotations === undefined ? {} : { annotations: parts.annotations }),
  };
  return {
    metadata,
    addressType,
    ...(endpoints === undefined ? {} : { endpoints }),
    ...(ports === undefined ? {} : { ports }),
  };
}

/** The labels of a slice that is imported from `cluster`, as KEP-1645 says. */
export function mcsLabels(cluster: string, service: string): Record<string, string> {
  return {
    "multicluster.kubernetes.io/service-name": service,
    "multicluster.kubernetes.io/source-cluster": cluster,
  };
}

/** A slice as an MCS implementation imports it. */
export function mcsSlice(cluster: string, service: string, parts: SliceParts = {}): EndpointSlice {
  return makeSlice({
    name: `${service}-${cluster}`,
    labels: mcsLabels(cluster, service),
    ...parts,
  });
}

/** A slice as Karmada collects it of a ServiceExport; the slice's own name may be given. */
export function karmadaSlice(
  cluster: string,
  service: string,
  { original = `${service}-x7k2m`, ...parts }: SliceParts & { readonly original?: string } = {},
): EndpointSlice {
  return makeSlice({
    name: `imported-${cluster}-${original}`,
    labels: { "kubernetes.io/service-name": `derived-${service}` },
    ...parts,
  });
}

/** Endpoints without a word on whether they are Ready, which means that they are. */
export function endpointsAt(...addresses: string[]): Endpoint[] {
  return addresses.map((address) => ({ addresses: [address] }));
}

/** An endpoint of a pod. */
export function podAt(pod: string, address: string): Endpoint {
  return { addresses: [address], targetRef: { kind: "Pod", name: pod } };
}

/** Whether the API server would pick an object with these labels; for the selectors used here. */
export function selects(selector: string, labels: Readonly<Record<string, string>>): boolean {
  return selector.split(/,(?![^(]*\))/).every((requirement) => {
    const notIn = /^(\S+) notin \((.*)\)$/.exec(requirement);
    if (notIn !== null) return !notIn[2]?.split(",").includes(labels[notIn[1] ?? ""] ?? "");
    return requirement.startsWith("!")
      ? !Object.hasOwn(labels, requirement.slice(1))
      : Object.hasOwn(labels, requirement);
  });
}
