import { canonicalAddress } from "./addresses.ts";
import type { Endpoint, EndpointPort, EndpointSlice } from "./slice-api.ts";

/** A port that has a number. */
export interface NumberedPort {
  readonly name: string;
  readonly port: number;
  readonly appProtocol: string | undefined;
}

/** The Ready endpoints of one slice, and the ports that each of them has. */
export interface ReadyEndpoints {
  readonly addresses: readonly string[];
  /** The pod of each address; empty where nobody asks for it. */
  readonly pods: readonly string[];
  readonly ports: readonly NumberedPort[];
}

const NO_PODS: readonly string[] = [];

/** What counts of a slice, as the documentation of discovery.k8s.io/v1 says to read it. */
export function readyEndpointsOf(
  slice: EndpointSlice,
  { withPods }: { readonly withPods: boolean },
): ReadyEndpoints {
  const addresses: string[] = [];
  const pods: string[] = [];
  for (const endpoint of slice.endpoints ?? []) {
    // Unknown is to be taken for true.
    if (endpoint.conditions?.ready === false) continue;
    const address = canonicalAddress(endpoint.addresses[0] ?? "");
    if (address === undefined) continue;
    addresses.push(address);
    if (withPods) pods.push(podOf(endpoint) ?? address);
  }
  return {
    addresses,
    pods: withPods ? pods : NO_PODS,
    ports: (slice.ports ?? []).flatMap(numbered),
  };
}

function podOf({ targetRef, hostname }: Endpoint): string | undefined {
  const pod = targetRef?.kind === "Pod" ? targetRef.name : undefined;
  // An empty name is none.
  return pod || hostname || undefined;
}

function numbered({ name, port, appProtocol }: EndpointPort): NumberedPort[] {
  if (port === undefined || port === null) return [];
  return [{ name: name ?? "", port, appProtocol: appProtocol ?? undefined }];
}

/** Whether two readings say the same, in the same order. */
export function sameEndpoints(a: ReadyEndpoints, b: ReadyEndpoints): boolean {
  return (
    sameTexts(a.addresses, b.addresses) &&
    sameTexts(a.pods, b.pods) &&
    a.ports.length === b.ports.length &&
    a.ports.every((port, index) => samePort(port, b.ports[index]))
  );
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

function samePort(a: NumberedPort, b: NumberedPort | undefined): boolean {
  return a.name === b?.name && a.port === b.port && a.appProtocol === b.appProtocol;
}
