import { isIP } from "node:net";

/**
 * An IP address as URLs show it, without brackets: IPv6 in the canonical form of the URL standard,
 * which is that of RFC 5952 with IPv4-mapped addresses in hexadecimal. Undefined for anything else,
 * such as a name, an address with a zone, or IPv4 with leading zeros, which readers take for two
 * different addresses.
 */
export function canonicalAddress(text: string): string | undefined {
  if (isIP(text) !== 6) return isIP(text) === 4 ? text : undefined;
  return URL.parse(`http://[${text}]`)?.hostname.slice(1, -1);
}

/** Whether a canonical address is an IPv6 one. */
export function isIPv6Address(address: string): boolean {
  return address.includes(":");
}
