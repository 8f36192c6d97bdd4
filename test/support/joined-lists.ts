import type { OwnershipRule } from "../../src/kubernetes/ownership.ts";
import type { EndpointPort, EndpointSlice } from "../../src/kubernetes/slice-api.ts";
import type { Registration } from "../../src/pools/pool.ts";

/** The Service of the routers in these tests. */
export const ROUTERS = { namespace: "dynamo", service: "global-router" };

/** The join of section "Karmada and MCS", as one pass over everything. */
export function joinedLists(
  rule: OwnershipRule,
  slices: readonly EndpointSlice[],
  registrations: readonly Registration[],
  routerPort: string | number | undefined,
) {
  const live = new Set(registrations.map(({ key }) => key.cluster_id));
  const endpoints = slices.flatMap((slice) => {
    const owner = ownerOf(rule, slice, live);
    if (owner === undefined || slice.addressType === "FQDN") return [];
    const ports = (slice.ports ?? []).filter(({ port }) => typeof port === "number");
    return (slice.endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses: [first = ""], targetRef, hostname }) => {
        if (!/^[\da-f.:]+$/i.test(first)) return [];
        const host = new URL(first.includes(":") ? `http://[${first}]` : `http://${first}`)
          .hostname;
        const address = host.replace(/[[\]]/g, "");
        const pod = (targetRef?.kind === "Pod" && targetRef.name) || hostname || address;
        return [{ ...owner, namespace: slice.metadata.namespace, address, host, pod, ports }];
      });
  });
  const find = (cluster: string, namespace: string, service: string) =>
    endpoints.filter(
      (endpoint) =>
        endpoint.cluster === cluster &&
        endpoint.namespace === namespace &&
        endpoint.service === service,
    );
  const sorted = (texts: string[]) => [...new Set(texts)].sort();

  const pools = registrations
    .map((registration) => {
      const { cluster_id, namespace, dgd_name } = registration.key;
      const relays = find(cluster_id, namespace, `${dgd_name}-pool-relay`);
      const frontends = find(cluster_id, namespace, `${dgd_name}-frontend`);
      return {
        ...registration,
        frontends: sorted(
          frontends.flatMap(({ host, ports }) => {
            const http = ports.filter(({ name }) => name === "http");
            return urls(host, http.length > 0 ? http.slice(0, 1) : ports);
          }),
        ),
        relay_identities: sorted(relays.map(({ address }) => `ip:${address}`)),
      };
    })
    .filter(({ relay_identities }) => relay_identities.length > 0)
    .sort((a, b) =>
      order(
        [a.key.cluster_id, a.key.namespace, a.key.dgd_name],
        [b.key.cluster_id, b.key.namespace, b.key.dgd_name],
      ),
    );

  const clusters = [...new Set(endpoints.map(({ cluster }) => cluster))];
  const replicas = clusters.flatMap((cluster) =>
    find(cluster, ROUTERS.namespace, ROUTERS.service).flatMap(({ host, pod, ports }) => {
      const named = ports.filter(({ name, port }) => name === routerPort || port === routerPort);
      const chosen = routerPort === undefined ? ports : named.slice(0, 1);
      return urls(host, chosen).map((url) => ({ replica: `${cluster}/${pod}`, url }));
    }),
  );
  const routers = replicas.filter(
    ({ replica, url }, at) =>
      replicas.findIndex((other) => other.replica === replica && other.url === url) === at &&
      (!url.includes("[") ||
        !replicas.some((other) => other.replica === replica && !other.url.includes("["))),
  );
  routers.sort((a, b) => order([a.replica, a.url], [b.replica, b.url]));
  return { pools: JSON.stringify({ pools, complete: true }), routers: JSON.stringify({ routers }) };
}

function ownerOf(rule: OwnershipRule, slice: EndpointSlice, live: ReadonlySet<string>) {
  const owner = rule.ownerOf(slice);
  if ("leftOut" in owner) return undefined;
  if ("cluster" in owner) return owner;
  const { name, service } = owner.handMade;
  const clusters = [...live].filter((cluster) => name.startsWith(`${cluster}-`));
  const [cluster] = clusters.sort((a, b) => b.length - a.length);
  return cluster === undefined ? undefined : { cluster, service };
}

/** The URL at the only port; none where there is not just one. */
function urls(host: string, [first, ...more]: readonly EndpointPort[]): string[] {
  if (first === undefined || more.length > 0) return [];
  const isHttps = first.name === "https" || /^https$/i.test(first.appProtocol ?? "");
  return [new URL(`${isHttps ? "https" : "http"}://${host}:${first.port}`).href];
}

function order(a: readonly string[], b: readonly string[]): number {
  const at = a.findIndex((text, index) => text !== b[index]);
  if (at < 0) return 0;
  return (a[at] ?? "") < (b[at] ?? "") ? -1 : 1;
}
