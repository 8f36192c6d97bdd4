import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Cluster } from "@kubernetes/client-node/dist/config_types.js";
import { type Clock, withDeadline } from "../runtime/clock.ts";
import { messageOf, type ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import { oneLine, quoted } from "../runtime/text.ts";
import type { Source } from "./api-server.ts";
import { ApiError } from "./slice-api.ts";

/** A command that hands out credentials, as a kubeconfig names it (client-go credential plugins). */
export interface ExecPlugin {
  readonly command: readonly string[];
  /** What the kubeconfig adds to the environment. */
  readonly env: Readonly<Record<string, string>>;
}

export interface ExecCredential {
  readonly token: string | undefined;
  readonly certificate: { readonly cert: string; readonly key: string } | undefined;
  /** Milliseconds since 1970; undefined where it lasts until it is refused. */
  readonly expiresAtMs: number | undefined;
}

const API_VERSIONS = ["v1", "v1beta1"].map((version) => `client.authentication.k8s.io/${version}`);

/**
 * Reads the `exec` part of a kubeconfig's user. A command with a slash in it is relative to `folder`,
 * the kubeconfig's own.
 */
export function execPluginOf(
  exec: unknown,
  options: {
    readonly folder: string;
    readonly user: string;
    readonly cluster: Cluster;
    readonly ca: Source | undefined;
    readonly refuse: (problem: string) => ServiceError;
  },
): ExecPlugin {
  const { folder, cluster, ca } = options;
  const refuse = (problem: string) =>
    options.refuse(`the exec plugin of user ${quoted(options.user)} ${problem}`);
  const { apiVersion, command, args, env, interactiveMode, provideClusterInfo } = fieldsOf(exec);
  if (typeof command !== "string" || command === "") throw refuse("names no command");
  if (typeof apiVersion !== "string" || !API_VERSIONS.includes(apiVersion)) {
    throw refuse(`has an apiVersion other than ${API_VERSIONS.join(" and ")}`);
  }
  if (interactiveMode === "Always") throw refuse("needs a terminal, and a service has none");
  const info = {
    apiVersion,
    kind: "ExecCredential",
    spec: {
      interactive: false,
      ...(provideClusterInfo === true ? { cluster: clusterInfo(cluster, ca, refuse) } : {}),
    },
  };
  const added = (Array.isArray(env) ? env : []).map((pair) => {
    const { name, value } = fieldsOf(pair);
    if (typeof name !== "string" || typeof (value ?? "") !== "string") {
      throw refuse("has an env whose names and values are not all text");
    }
    return [name, value ?? ""] as const;
  });
  const given: readonly unknown[] = Array.isArray(args) ? args : [];
  const isText = (value: unknown) => typeof value === "string";
  if (!given.every(isText)) throw refuse("has args that are not all text; put them between quotes");
  return {
    command: [
      command.includes("/") && !isAbsolute(command) ? join(folder, command) : command,
      ...given,
    ],
    env: { ...Object.fromEntries(added), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
  };
}

/** A Cluster of client.authentication.k8s.io, which has the CA as data always. */
function clusterInfo(
  { server, tlsServerName, proxyUrl }: Cluster,
  ca: Source | undefined,
  refuse: (problem: string) => ServiceError,
) {
  let pem: Buffer | undefined;
  try {
    pem = ca && ("file" in ca ? readFileSync(ca.file) : Buffer.from(ca.text));
  } catch (error) {
    throw refuse(`is to be told the cluster's CA, which can't be read: ${messageOf(error)}`);
  }
  return {
    server,
    "tls-server-name": tlsServerName,
    "certificate-authority-data": pem?.toString("base64"),
    "proxy-url": proxyUrl,
  };
}

/** Runs a plugin. Rejects with an {@link ApiError} `denied`, or with the signal's reason. */
export async function runExecPlugin(
  { command, env }: ExecPlugin,
  surroundings: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<ExecCredential> {
  const { clock, signal } = surroundings;
  const [name = ""] = command;
  const denied = (problem: string) =>
    new ApiError("denied", `no credentials: the exec plugin ${quoted(name)} ${problem}`);
  const end = new AbortController();
  const abort = () => end.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", abort, { once: true });
  let output: Output;
  try {
    output = await withDeadline(clock, limits.execPluginMs, (late) => {
      late.addEventListener("abort", () => end.abort(late.reason), { once: true });
      return outputOf(command, { ...surroundings.env, ...env }, end.signal);
    });
  } catch (error) {
    signal.throwIfAborted();
    throw denied(`can't be run: ${oneLine(messageOf(error), limits.repeatedChars)}`);
  } finally {
    signal.removeEventListener("abort", abort);
  }
  signal.throwIfAborted();
  if (output.status !== 0) {
    const said = oneLine(output.stderr.trim(), limits.repeatedChars);
    throw denied(`failed with status ${output.status}${said === "" ? "" : `: ${said}`}`);
  }
  const credential = credentialOf(output.stdout);
  if (credential === undefined) throw denied("wrote no ExecCredential with a token or certificate");
  return credential;
}

interface Output {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function outputOf(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<Output> {
  const child = Bun.spawn([...command], {
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    maxBuffer: limits.execPluginBytes,
    signal,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

function credentialOf(text: string): ExecCredential | undefined {
  let written: unknown;
  try {
    written = JSON.parse(text);
  } catch {
    return undefined;
  }
  const {
    token,
    clientCertificateData: cert,
    clientKeyData: key,
    expirationTimestamp,
  } = fieldsOf(fieldsOf(written).status);
  const hasCertificate = typeof cert === "string" && typeof key === "string" && cert !== "";
  const hasToken = typeof token === "string" && token !== "";
  if (!hasCertificate && !hasToken) return undefined;
  const expiresAtMs =
    typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : Number.NaN;
  return {
    token: hasToken ? token : undefined,
    certificate: hasCertificate ? { cert, key } : undefined,
    expiresAtMs: Number.isNaN(expiresAtMs) ? undefined : expiresAtMs,
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
