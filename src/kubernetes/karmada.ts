import { type Ownership, type OwnershipRule, SOURCE_CLUSTER_LABEL } from "./ownership.ts";
import type { EndpointSlice } from "./slice-api.ts";

const SERVICE_LABEL = "kubernetes.io/service-name";
const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const DISPATCHER = "endpointslice-dispatch-controller.karmada.io";
const PROVIDER_ANNOTATION = "endpointslice.karmada.io/provision-cluster";
const NAME_PREFIX = "imported-";
const SERVICE_PREFIX = "derived-";

/**
 * How the API server ends a name that it generates: it keeps this much of the base and adds five
 * random characters (apiserver `pkg/storage/names/generate.go`, apimachinery `pkg/util/rand`).
 */
const GENERATED_BASE_CHARS = 58;
const GENERATED_END = /^[bcdfghjklmnpqrstvwxz2456789]{5}$/;
const GENERATED_END_CHARS = 5;

/** A member cluster's name (Karmada `pkg/apis/cluster/validation/validation.go`). */
const CLUSTER_NAME = /^[a-z0-9]([-a-z0-9]{0,46}[a-z0-9])?$/;

/**
 * Slices that Karmada copied, in either of its two ways.
 *
 * Both give a copy labels of its own in place of the original's, and neither says that a controller
 * of Kubernetes itself manages it, as nearly all other slices of a member cluster do. So those need
 * not be read. (karmada-io/karmada: `collectEndpointSliceFromWork` in
 * `pkg/controllers/mcs/endpointslice_controller.go`, as of c669017 and after;
 * `CreateOrUpdateEndpointSlice` in `pkg/util/helper/mcs.go`; `ensureEndpointSliceWork` in
 * `pkg/controllers/multiclusterservice/endpointslice_dispatch_controller.go`, as of 05bda3f.)
 */
export const karmada: OwnershipRule = {
  labelSelector: [
    SERVICE_LABEL,
    `!${SOURCE_CLUSTER_LABEL}`,
    `${MANAGED_BY_LABEL} notin (endpointslice-controller.k8s.io,endpointslicemirroring-controller.k8s.io)`,
  ].join(),
  ownerOf: ({ metadata: { name, labels, annotations } }: EndpointSlice): Ownership => {
    const service = labels?.[SERVICE_LABEL];
    if (!service || labels?.[SOURCE_CLUSTER_LABEL] !== undefined) {
      return { leftOut: "not-imported" };
    }
    if (labels[MANAGED_BY_LABEL] === DISPATCHER) {
      const cluster = annotations?.[PROVIDER_ANNOTATION];
      return cluster ? { cluster, service } : { leftOut: "unknown-cluster" };
    }
    if (!name.startsWith(NAME_PREFIX) || !service.startsWith(SERVICE_PREFIX)) {
      return { leftOut: "not-imported" };
    }
    return exported(name.slice(NAME_PREFIX.length), service.slice(SERVICE_PREFIX.length));
  },
};

/**
 * Whose slice it is that a ServiceExport brought. `name` is `<cluster>-<slice>`, where the
 * slice's own name is most often one that was generated for its Service. Then it tells where the
 * cluster ends, and nothing else is ever tried: the start of such a name may well be the name of
 * another cluster.
 */
function exported(name: string, service: string): Ownership {
  if (service === "") return { leftOut: "not-imported" };
  const slice = generatedSliceOf(`-${name}`, service);
  if (slice === undefined) return { handMade: { name, service } };
  const cluster = name.slice(0, -slice.length);
  return CLUSTER_NAME.test(cluster) ? { cluster, service } : { leftOut: "unknown-cluster" };
}

/** The end of a name, its dash included, that was generated for a slice of `service`. */
function generatedSliceOf(name: string, service: string): string | undefined {
  const base = `-${`${service}-`.slice(0, GENERATED_BASE_CHARS)}`;
  const slice = name.slice(-(base.length + GENERATED_END_CHARS));
  const isGenerated = slice.startsWith(base) && GENERATED_END.test(slice.slice(base.length));
  return isGenerated ? slice : undefined;
}
