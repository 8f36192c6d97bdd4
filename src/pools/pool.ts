/**
 * A pool is one deployment of one model in one cluster; a registration is what its Pool Relay says
 * of it. Field names are those of the wire, and the types list them in the order of the wire.
 */
export interface PoolKey {
  readonly cluster_id: string;
  readonly namespace: string;
  readonly dgd_name: string;
}

export interface Location {
  readonly region: string;
  readonly availability_zone: string | null;
  readonly datacenter: string | null;
}

export interface Capacity {
  readonly sku: string;
  readonly workers: number;
}

export interface Registration {
  readonly key: PoolKey;
  readonly location: Location;
  readonly model: string;
  readonly capabilities: readonly string[];
  /** Origins with a trailing slash, in the serialised form of the URL standard. */
  readonly frontends: readonly string[];
  readonly capacity: readonly Capacity[];
}

/** A registration as JSON. Where it was parsed from just that text, the very same string. */
export function registrationJson(registration: Registration, text: string): string {
  const json = JSON.stringify(registration);
  return json === text ? text : json;
}

/** A pool's name for people, as logs and messages show it. */
export function poolName(key: PoolKey): string {
  return `${key.cluster_id}/${key.namespace}/${key.dgd_name}`;
}

/**
 * One string for a key, different for each key: the three parts with `%` and `/` in them
 * percent-encoded, joined by `/`.
 */
export function sortKey(key: PoolKey): string {
  return `${encodePart(key.cluster_id)}/${encodePart(key.namespace)}/${encodePart(key.dgd_name)}`;
}

function encodePart(part: string): string {
  return part.replaceAll("%", "%25").replaceAll("/", "%2F");
}

/** The key that `sortKey` made a string of; undefined for a string that is none of those. */
export function keyOf(id: string): PoolKey | undefined {
  const [cluster_id, namespace, dgd_name, ...more] = id.split("/").map(decodePart);
  if (cluster_id === undefined || namespace === undefined || dgd_name === undefined) {
    return undefined;
  }
  return more.length === 0 ? { cluster_id, namespace, dgd_name } : undefined;
}

function decodePart(part: string): string {
  return part.includes("%") ? part.replaceAll("%2F", "/").replaceAll("%25", "%") : part;
}

/**
 * The order of `GET /pools`, of two sort keys: by cluster, namespace and name, each in UTF-16 code-unit
 * order.
 */
export function compareIds(a: string, b: string): number {
  if (a === b) return 0;
  let at = 0;
  while (a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  return rankAt(a, at) - rankAt(b, at);
}

/** What stands there counts for: the end of a part comes before all that the part could go on with. */
function rankAt(id: string, at: number): number {
  if (at >= id.length) return -2;
  const code = id.charCodeAt(at);
  if (code === SLASH) return -1;
  if (code !== PERCENT) return code;
  return id.startsWith("%2F", at) ? SLASH : PERCENT;
}

const SLASH = 0x2f;
const PERCENT = 0x25;

/** UTF-16 code-unit order: the same on every machine, unlike `localeCompare`. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * An http or https URL that is nothing but an origin, in the URL standard's serialised form with
 * the path `/`; undefined for anything else (a path, a query, a fragment, a user, another scheme).
 */
export function originUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  return url.href === `${url.origin}/` ? url.href : undefined;
}
