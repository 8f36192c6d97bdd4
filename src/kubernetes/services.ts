/** A Service of one cluster. */
export interface ServiceKey {
  readonly cluster: string;
  readonly namespace: string;
  readonly service: string;
}

const RELAY_SUFFIX = "-pool-relay";
const FRONTEND_SUFFIX = "-frontend";

/** The Service of a pool's relays. */
export function relayService(dgdName: string): string {
  return `${dgdName}${RELAY_SUFFIX}`;
}

/** The Service of a pool's frontends. */
export function frontendService(dgdName: string): string {
  return `${dgdName}${FRONTEND_SUFFIX}`;
}

/** The DGD whose relays a Service is for; undefined where it is for none. */
export function dgdNameOfRelays(service: string): string | undefined {
  return service.endsWith(RELAY_SUFFIX) ? service.slice(0, -RELAY_SUFFIX.length) : undefined;
}

/** The DGD whose relays or frontends a Service is for; undefined where it is neither. */
export function dgdNameOf(service: string): string | undefined {
  const suffix = [RELAY_SUFFIX, FRONTEND_SUFFIX].find((candidate) => service.endsWith(candidate));
  return suffix === undefined ? undefined : service.slice(0, -suffix.length);
}
