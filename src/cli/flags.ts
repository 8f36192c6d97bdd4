import { originUrl } from "../pools/pool.ts";
import { limits } from "../runtime/limits.ts";
import { CONTROL_CHARACTER, isBlank, quoted } from "../runtime/text.ts";

/** Why a value is not one that its flag takes; the message follows the flag's name. */
export class ValueFault extends Error {}

/** One flag. `read` makes the value out of what was typed, or throws a {@link ValueFault}. */
export interface Flag<T> {
  readonly heading: keyof typeof headings;
  /** What `--help` shows for the value. */
  readonly value: string;
  readonly help: string;
  readonly default?: string;
  readonly repeatable?: true;
  readonly read: (text: string) => T;
}

/** The setting that a heading's flags need. */
export interface Need {
  readonly flag: "pool-discovery" | "registration-storage";
  readonly values: readonly string[];
}

/** The four headings of `--help`, in order, and where their flags apply. */
export const headings: Readonly<
  Record<"all" | "registrations" | "kubernetes" | "dynamodb", { title: string; need?: Need }>
> = {
  all: { title: "All modes" },
  registrations: {
    title: "With --pool-discovery registrations",
    need: { flag: "pool-discovery", values: ["registrations"] },
  },
  kubernetes: {
    title: "With --pool-discovery karmada or mcs",
    need: { flag: "pool-discovery", values: ["karmada", "mcs"] },
  },
  dynamodb: {
    title: "With --registration-storage dynamodb",
    need: { flag: "registration-storage", values: ["dynamodb"] },
  },
};

// Keeps each flag's own value type, which a plain annotation of the table would lose.
const flag = <T>(definition: Flag<T>): Flag<T> => definition;

/** Every flag: the one table that the parser, the citty definition and `--help` are made from. */
export const flags = {
  listen: flag({
    heading: "all",
    value: "<addr>",
    default: "0.0.0.0:8080",
    read: address,
    help: "IP address and port to serve on; [::]:8080 serves IPv6 and IPv4, port 0 takes a free one",
  }),
  "tls-cert-path": flag({
    heading: "all",
    value: "<path>",
    read: path,
    help: "Serve HTTPS with this PEM certificate chain; needs --tls-key-path",
  }),
  "tls-key-path": flag({
    heading: "all",
    value: "<path>",
    read: path,
    help: "The certificate's private key, PEM; needs --tls-cert-path",
  }),
  "tls-client-ca-path": flag({
    heading: "all",
    value: "<path>",
    read: path,
    help: "Refuse clients without a certificate that this CA signed; needs the two above",
  }),
  "pool-discovery": flag({
    heading: "all",
    value: "<mode>",
    default: "registrations",
    read: oneOf("registrations", "karmada", "mcs"),
    help: "Where the lists come from: registrations, karmada or mcs",
  }),
  "registration-storage": flag({
    heading: "all",
    value: "<store>",
    default: "memory",
    read: oneOf("memory", "dynamodb"),
    help: "Where registrations are kept: memory or dynamodb",
  }),
  "heartbeat-interval-secs": flag({
    heading: "all",
    value: "<n>",
    default: "5",
    read: seconds(1, limits.leaseSecs),
    help: "How often a Pool Relay is told to register again; below the lease",
  }),
  "lease-duration-secs": flag({
    heading: "all",
    value: "<n>",
    default: "15",
    read: seconds(1, limits.leaseSecs),
    help: "How long a registration lasts; at most 86400",
  }),
  router: flag({
    heading: "registrations",
    value: "<id>=<url>",
    repeatable: true,
    read: router,
    help: "A Global Router replica for GET /routers; repeat the flag for each",
  }),
  "router-namespace": flag({
    heading: "kubernetes",
    value: "<name>",
    default: "dynamo",
    read: dnsLabel,
    help: "Namespace of the Global Router Service",
  }),
  "router-service": flag({
    heading: "kubernetes",
    value: "<name>",
    default: "global-router",
    read: dnsLabel,
    help: "Name of the Global Router Service",
  }),
  "router-port": flag({
    heading: "kubernetes",
    value: "<name or number>",
    read: port,
    help: "Its port that Pool Relays connect to; unset, the only port it has",
  }),
  "dynamodb-table": flag({
    heading: "dynamodb",
    value: "<name>",
    read: tableName,
    help: "The table; required with this store",
  }),
  "dynamodb-region": flag({
    heading: "dynamodb",
    value: "<name>",
    read: region,
    help: "The table's AWS region; unset, the AWS environment's",
  }),
  "dynamodb-endpoint-url": flag({
    heading: "dynamodb",
    value: "<url>",
    read: httpUrl,
    help: "Another endpoint than AWS's own, such as DynamoDB Local or a VPC endpoint",
  }),
  "dynamodb-poll-interval-secs": flag({
    heading: "dynamodb",
    value: "<n>",
    default: "2",
    read: seconds(1, limits.leaseSecs),
    help: "How often the table is read; below the lease",
  }),
  "dynamodb-replication-grace-secs": flag({
    heading: "dynamodb",
    value: "<n>",
    default: "30",
    read: seconds(0, limits.replicationGraceSecs),
    help: "How much longer a pool that another region wrote stays listed after its lease",
  }),
  "lease-skew-secs": flag({
    heading: "dynamodb",
    value: "<n>",
    default: "2",
    read: seconds(0, limits.leaseSecs),
    help: "Allowance for clocks that differ between replicas; below the lease",
  }),
} as const;

export type Flags = typeof flags;
export type FlagName = keyof Flags;

/** What every flag that was given, or has a default, came to. */
export type FlagValues = { [Name in FlagName]: ReturnType<Flags[Name]["read"]>[] };

export interface Address {
  readonly host: string;
  readonly port: number;
}

function address(text: string): Address {
  const [, bracketed, bare, digits = ""] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? bare ?? "";
  // An IP address is what the URL standard leaves as it stands, or takes between brackets. (node:net
  // knows it too, but loading that costs a third of the start.)
  const isIp =
    bracketed === undefined
      ? /^[\d.]+$/.test(host) && URL.parse(`http://${host}`)?.hostname === host
      : URL.canParse(`http://[${host}]`);
  if (!isIp || Number(digits) > 65_535) {
    throw new ValueFault(
      `${quoted(text)} is not an IP address and port, such as 0.0.0.0:8080 or [::]:8080`,
    );
  }
  return { host, port: Number(digits) };
}

function path(text: string): string {
  if (text === "") throw new ValueFault("the path is empty");
  return text;
}

function oneOf<const T extends string>(...values: readonly T[]): (text: string) => T {
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    if (value !== undefined) return value;
    throw new ValueFault(`${quoted(text)} is not one of ${values.join(", ")}`);
  };
}

/** Whole seconds from `least` to `most`: digits, no sign, unit or exponent. */
function seconds(least: number, most: number): (text: string) => number {
  return (text) => {
    if (!/^\d+$/.test(text)) {
      throw new ValueFault(`${quoted(text)} is not a whole number of seconds (digits only)`);
    }
    const value = Number(text);
    if (value < least) throw new ValueFault(`${quoted(text)} is too small: at least ${least}`);
    if (value > most) throw new ValueFault(`${quoted(text)} is too large: at most ${most}`);
    return value;
  };
}

function router(text: string): { replica: string; url: string } {
  const at = text.indexOf("=");
  if (at < 0) throw new ValueFault(`${quoted(text)} is not of the form <id>=<url>`);
  const replica = text.slice(0, at);
  if (isBlank(replica)) throw new ValueFault(`the id in ${quoted(text)} is blank`);
  if (CONTROL_CHARACTER.test(replica)) {
    throw new ValueFault(`the id in ${quoted(text)} has a control character in it`);
  }
  const url = originUrl(text.slice(at + 1));
  if (url === undefined) {
    throw new ValueFault(
      `${quoted(text.slice(at + 1))} is not an http or https URL with a host ` +
        "and no path, query, fragment or user",
    );
  }
  return { replica, url };
}

/** A name as Kubernetes gives namespaces and Services (RFC 1123 label). */
function dnsLabel(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw new ValueFault(
    `${quoted(text)} is not a Kubernetes name: 1 to 63 of a-z, 0-9 and -, no - at either end`,
  );
}

/** A port as EndpointSlices name it: a number, or the name of a Service's port. */
function port(text: string): string | number {
  if (!/^\d+$/.test(text)) return dnsLabel(text);
  const number = Number(text);
  if (number >= 1 && number <= 65_535) return number;
  throw new ValueFault(`${quoted(text)} is not a port number: 1 to 65535`);
}

function tableName(text: string): string {
  if (/^[A-Za-z0-9_.-]{3,255}$/.test(text)) return text;
  throw new ValueFault(
    `${quoted(text)} is not a DynamoDB table name: 3 to 255 of a-z, A-Z, 0-9, _, - and .`,
  );
}

function region(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw new ValueFault(`${quoted(text)} is not an AWS region, such as us-west-2`);
}

function httpUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:")) return url.href;
  throw new ValueFault(`${quoted(text)} is not an http or https URL`);
}
