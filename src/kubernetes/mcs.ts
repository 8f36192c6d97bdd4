import { type Ownership, type OwnershipRule, SOURCE_CLUSTER_LABEL } from "./ownership.ts";
import type { EndpointSlice } from "./slice-api.ts";

/** The imported Service, by the name that it has in its own cluster (KEP-1645). */
const SERVICE_LABEL = "multicluster.kubernetes.io/service-name";

/**
 * The namespace that a Service was exported from. Submariner Lighthouse keeps a copy of each slice in
 * its broker's namespace, and only this label tells them apart
 * (lighthouse `pkg/agent/controller/service_endpoint_slices.go`).
 */
const LIGHTHOUSE_NAMESPACE_LABEL = "lighthouse.submariner.io/sourceNamespace";

/** Slices that are labelled as KEP-1645 says: Lighthouse, Cilium, Cloud Map and others. */
export const mcs: OwnershipRule = {
  labelSelector: `${SERVICE_LABEL},${SOURCE_CLUSTER_LABEL}`,
  ownerOf: ({ metadata: { namespace, labels } }: EndpointSlice): Ownership => {
    const service = labels?.[SERVICE_LABEL];
    const cluster = labels?.[SOURCE_CLUSTER_LABEL];
    if (!service || !cluster) return { leftOut: "not-imported" };
    const sourceNamespace = labels?.[LIGHTHOUSE_NAMESPACE_LABEL] ?? namespace;
    if (sourceNamespace !== namespace) return { leftOut: "other-namespace" };
    return { cluster, service };
  },
};
