import type { Router, RouterService } from "../directory/routers.ts";
import { ServiceError } from "../runtime/errors.ts";
import { quoted } from "../runtime/text.ts";
import { type Address, type FlagName, type Flags, flags, headings, type Need } from "./flags.ts";
import type { CommandLine, Fault } from "./parse.ts";

/** What the service is to do: the flags, checked one by one and against each other. */
export type Config = CommonConfig & (RegistrationsConfig | KubernetesConfig);

interface CommonConfig {
  readonly listen: Address;
  readonly tls: TlsConfig | undefined;
  readonly storage: { readonly store: "memory" } | DynamodbConfig;
  readonly heartbeatIntervalSecs: number;
  readonly leaseDurationSecs: number;
}

interface TlsConfig {
  readonly certPath: string;
  readonly keyPath: string;
  /** Undefined: clients are not asked for certificates. */
  readonly clientCaPath: string | undefined;
}

interface RegistrationsConfig {
  readonly mode: "registrations";
  readonly routers: readonly Router[];
}

export interface KubernetesConfig {
  readonly mode: "karmada" | "mcs";
  readonly routerService: RouterService;
}

export interface DynamodbConfig {
  readonly store: "dynamodb";
  readonly table: string;
  /** Undefined: as the AWS environment says. */
  readonly region: string | undefined;
  /** Undefined: AWS's own. */
  readonly endpointUrl: string | undefined;
  readonly pollIntervalSecs: number;
  readonly replicationGraceSecs: number;
  readonly skewSecs: number;
}

/**
 * Turns a command line into a configuration.
 *
 * @throws ServiceError `usage`, naming every flag at fault
 */
export function readConfig({ given, faults: ownFaults }: CommandLine): Config {
  const get = firstValuesOf(given);
  const faults = [...ownFaults, ...misplaced(given), ...mismatched(given)];
  if (faults.length > 0) throw new ServiceError("usage", usageMessage(faults));

  return {
    ...discoveryConfig(given),
    listen: required(get("listen")),
    tls: tlsConfig(given),
    storage:
      get("registration-storage") === "dynamodb" ? dynamodbConfig(given) : { store: "memory" },
    heartbeatIntervalSecs: required(get("heartbeat-interval-secs")),
    leaseDurationSecs: required(get("lease-duration-secs")),
  };
}

function tlsConfig(given: Given): TlsConfig | undefined {
  const get = firstValuesOf(given);
  const certPath = get("tls-cert-path");
  if (certPath === undefined) return undefined;
  return {
    certPath,
    keyPath: required(get("tls-key-path")),
    clientCaPath: get("tls-client-ca-path"),
  };
}

function discoveryConfig(given: Given): RegistrationsConfig | KubernetesConfig {
  const get = firstValuesOf(given);
  const mode = required(get("pool-discovery"));
  if (mode === "registrations") return { mode, routers: valuesOf(given, "router") };
  return {
    mode,
    routerService: {
      namespace: required(get("router-namespace")),
      service: required(get("router-service")),
      port: get("router-port"),
    },
  };
}

function dynamodbConfig(given: Given): DynamodbConfig {
  const get = firstValuesOf(given);
  return {
    store: "dynamodb",
    table: required(get("dynamodb-table")),
    region: get("dynamodb-region"),
    endpointUrl: get("dynamodb-endpoint-url"),
    pollIntervalSecs: required(get("dynamodb-poll-interval-secs")),
    replicationGraceSecs: required(get("dynamodb-replication-grace-secs")),
    skewSecs: required(get("lease-skew-secs")),
  };
}

type Given = CommandLine["given"];
type Value<Name extends FlagName> = ReturnType<Flags[Name]["read"]>;

/** The values that a flag was given with. */
function valuesOf<Name extends FlagName>(given: Given, name: Name): Value<Name>[] {
  // The parser put in what this same flag's `read` returned.
  return (given.get(name) ?? []) as Value<Name>[];
}

/** A flag's value, or its default; undefined where it has neither, or was given a faulty value. */
function firstValue<Name extends FlagName>(given: Given, name: Name): Value<Name> | undefined {
  if (given.has(name)) return valuesOf(given, name)[0];
  const { default: text, read } = flags[name];
  // A table entry's `read` and `default` belong together.
  return text === undefined ? undefined : (read(text) as Value<Name>);
}

/** {@link firstValue} of one command line. */
function firstValuesOf(given: Given) {
  return <Name extends FlagName>(name: Name) => firstValue(given, name);
}

/** For a flag with a default, or whose absence would have been a fault. */
function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a flag that must have a value has none");
  return value;
}

/** Flags under a heading whose need the settings don't meet. */
function misplaced(given: Given): Fault[] {
  const faults: Fault[] = [];
  for (const name of given.keys()) {
    const { need } = headings[flags[name].heading];
    if (need === undefined) continue;
    const current = firstValue(given, need.flag);
    if (current !== undefined && !need.values.includes(current)) {
      faults.push({
        subject: `--${name}`,
        reason: `only applies ${where(need)}, but ${isNow(need, current)}`,
      });
    }
  }
  return faults;
}

function where({ flag, values }: Need): string {
  return `with --${flag} ${values.join(" or ")}`;
}

function isNow({ flag }: Need, current: string): string {
  return `--${flag} is ${current}`;
}

/** Flags that are right by themselves, but not together. */
function mismatched(given: Given): Fault[] {
  const get = firstValuesOf(given);
  const faults: Fault[] = [];
  const fault = (name: FlagName, reason: string) => faults.push({ subject: `--${name}`, reason });

  const cert = given.has("tls-cert-path");
  const key = given.has("tls-key-path");
  if (cert && !key) fault("tls-cert-path", "needs --tls-key-path as well");
  if (key && !cert) fault("tls-key-path", "needs --tls-cert-path as well");
  if (given.has("tls-client-ca-path") && !(cert && key)) {
    fault("tls-client-ca-path", "needs --tls-cert-path and --tls-key-path as well");
  }

  const leaseSecs = get("lease-duration-secs");
  const belowLease = (name: FlagName, secs: number | undefined) => {
    if (secs !== undefined && leaseSecs !== undefined && secs >= leaseSecs) {
      fault(name, `${secs} s is not below the lease of ${leaseSecs} s (--lease-duration-secs)`);
    }
  };
  belowLease("heartbeat-interval-secs", get("heartbeat-interval-secs"));

  if (get("registration-storage") === "dynamodb") {
    if (!given.has("dynamodb-table")) {
      fault("dynamodb-table", "is required with --registration-storage dynamodb");
    }
    belowLease("dynamodb-poll-interval-secs", get("dynamodb-poll-interval-secs"));
    belowLease("lease-skew-secs", get("lease-skew-secs"));
  }

  const replicas = new Set<string>();
  for (const { replica } of valuesOf(given, "router")) {
    if (replicas.has(replica)) fault("router", `the id ${quoted(replica)} is given twice`);
    replicas.add(replica);
  }
  return faults;
}

function usageMessage(faults: readonly Fault[]): string {
  const lines = faults.map(({ subject, reason }) => `${subject}: ${reason}`);
  if (lines.length === 1) return lines.join();
  return `${lines.length} faults on the command line\n${lines.map((line) => `  ${line}`).join("\n")}`;
}
