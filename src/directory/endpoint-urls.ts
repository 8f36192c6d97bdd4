import { isIPv6Address } from "../kubernetes/addresses.ts";
import type { NumberedPort } from "../kubernetes/endpoints.ts";

/**
 * Where an endpoint is reached, as an origin and `/` in the serialised form of the URL standard. The
 * address is a canonical one. A port that says `https`, by its application protocol (whose case
 * doesn't matter, RFC 6335, section 5.1) or else by its name, is reached that way.
 */
export function endpointUrl(address: string, { name, port, appProtocol }: NumberedPort): string {
  const isHttps = name === "https" || appProtocol?.toLowerCase() === "https";
  const host = isIPv6Address(address) ? `[${address}]` : address;
  const isUsual = port === (isHttps ? 443 : 80);
  return `${isHttps ? "https" : "http"}://${host}${isUsual ? "" : `:${port}`}/`;
}

/** The port of a slice of frontends that takes requests: the one named `http`, else the only one. */
export function frontendPort(ports: readonly NumberedPort[]): NumberedPort | undefined {
  return ports.find(({ name }) => name === "http") ?? onlyPort(ports);
}

/** The port there is; undefined where there is none, or more than one to choose from. */
export function onlyPort(ports: readonly NumberedPort[]): NumberedPort | undefined {
  return ports.length === 1 ? ports[0] : undefined;
}
