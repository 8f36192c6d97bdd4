import type { EndpointSlice } from "./slice-api.ts";

/**
 * Why a slice is left out:
 *
 * - `not-imported`: it was not imported from another cluster in the way that the mode reads
 * - `other-namespace`: a broker's copy, which lies in another namespace than the Service's own
 * - `unknown-cluster`: it is imported, but from which cluster can't be told
 * - `fqdn`: its addresses are names, not IP addresses
 * - `other-service`: its Service belongs neither to a pool nor to the routers
 */
export type LeftOutReason =
  | "not-imported"
  | "other-namespace"
  | "unknown-cluster"
  | "fqdn"
  | "other-service";

/** Whose slice it is, as far as the slice itself can tell. Its namespace is its Service's. */
export type Ownership =
  | { readonly cluster: string; readonly service: string }
  /** `name` is the cluster, a dash and more; only a list of clusters tells where the dash is. */
  | { readonly handMade: { readonly name: string; readonly service: string } }
  | { readonly leftOut: LeftOutReason };

/** How a Multi-Cluster Services implementation marks the slices that it imports. */
export interface OwnershipRule {
  /** Selects on the API server all slices that may have an owner, and few others. */
  readonly labelSelector: string;
  ownerOf(slice: EndpointSlice): Ownership;
}

/** The cluster that a slice was imported from (KEP-1645). */
export const SOURCE_CLUSTER_LABEL = "multicluster.kubernetes.io/source-cluster";
