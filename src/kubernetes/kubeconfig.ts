import { readFileSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
// What KubeConfig reads the entries with. KubeConfig itself would load 0.7 MB more, and is not kubectl:
// it reads no tokenFile, tells exec plugins nothing, prefers the last of several files, files to data,
// and refuses kubectl proxy's plain http.
import {
  type Cluster,
  type Context,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from "@kubernetes/client-node/dist/config_types.js";
import { YAML } from "bun";
import { messageOf, ServiceError } from "../runtime/errors.ts";
import { oneLine, quoted } from "../runtime/text.ts";
import type { ApiServer, ApiUser, Source } from "./api-server.ts";
import { execPluginOf } from "./exec-plugin.ts";

/** Who shows nothing. */
export const NOBODY: ApiUser = {
  certificate: undefined,
  tokenFile: undefined,
  token: undefined,
  basic: undefined,
  exec: undefined,
  impersonates: undefined,
};

/** A file's entries, and where each name that is relative starts from. */
interface Entry<T> {
  readonly value: T;
  readonly file: string;
}

type LoadedUser = User & {
  readonly tokenFile: string | undefined;
  /** What it asks for that is not done here. */
  readonly unsupported: readonly string[];
};

/**
 * The API server that kubeconfigs name together: of what several say, the first counts.
 *
 * @throws ServiceError `startup`
 */
export function apiServerOf(files: readonly string[]): ApiServer {
  const clusters = new Map<string, Entry<Cluster>>();
  const users = new Map<string, Entry<LoadedUser>>();
  const contexts = new Map<string, Entry<Context>>();
  let current = "";
  for (const file of files) {
    const loaded = load(file);
    addNew(clusters, loaded.clusters, file);
    addNew(users, loaded.users, file);
    addNew(contexts, loaded.contexts, file);
    current ||= loaded.currentContext;
  }

  const all = files.join(delimiter);
  const refuse = (problem: string) => new ServiceError("startup", `kubeconfig ${all}: ${problem}`);
  if (current === "") {
    throw refuse("no current-context is set; set it with kubectl config use-context");
  }
  const context = contexts.get(current);
  if (context === undefined) {
    throw refuse(`there is no context ${quoted(current)}, which is the current-context`);
  }
  const { cluster: clusterName, user: userName } = context.value;
  const cluster = clusters.get(clusterName);
  if (cluster === undefined) {
    throw refuse(`there is no cluster ${quoted(clusterName)}, which ${quoted(current)} names`);
  }
  const user = userName ? users.get(userName) : undefined;
  if (userName && user === undefined) {
    throw refuse(`there is no user ${quoted(userName)}, which ${quoted(current)} names`);
  }
  return {
    foundIn: `kubeconfig ${all}, context ${quoted(current)}`,
    ...serverSettings(cluster, refuse),
    user: user === undefined ? NOBODY : userSettings(user, cluster, refuse),
  };
}

function addNew<T extends { readonly name: string }>(
  known: Map<string, Entry<T>>,
  values: readonly T[],
  file: string,
): void {
  for (const value of values) if (!known.has(value.name)) known.set(value.name, { value, file });
}

function load(file: string): {
  readonly clusters: readonly Cluster[];
  readonly users: readonly LoadedUser[];
  readonly contexts: readonly Context[];
  readonly currentContext: string;
} {
  try {
    const document = recordOf(YAML.parse(readFileSync(file, "utf8")) ?? {}, "it");
    checkForm(document);
    const rawUsers = Array.isArray(document.users) ? document.users : [];
    return {
      clusters: newClusters(document.clusters),
      contexts: newContexts(document.contexts),
      users: newUsers(document.users).map((user, index) => {
        const raw = recordOf(recordOf(rawUsers[index], "a user").user ?? {}, "a user");
        return {
          ...user,
          // newUsers() looks for another name, which kubectl doesn't know.
          tokenFile: textOrNone(raw.tokenFile),
          unsupported: UNSUPPORTED.filter((name) => name in raw),
        };
      }),
      currentContext: textOrNone(document["current-context"]) ?? "",
    };
  } catch (error) {
    throw new ServiceError(
      "startup",
      `kubeconfig ${file} can't be read: ${oneLine(messageOf(error), 200)}`,
    );
  }
}

/** What a kubeconfig has lists of: under which name the settings of an entry are, and which are text. */
const FORM = {
  clusters: {
    settings: "cluster",
    texts: [
      ...["server", "certificate-authority", "certificate-authority-data"],
      ...["tls-server-name", "proxy-url"],
    ],
  },
  users: {
    settings: "user",
    texts: [
      ...["client-certificate", "client-certificate-data", "client-key", "client-key-data"],
      ...["token", "tokenFile", "username", "password", "as"],
    ],
  },
  contexts: { settings: "context", texts: ["cluster", "user"] },
} as const;

/** Throws where something is not of its type: a token that YAML takes for a number, for one. */
function checkForm(document: Readonly<Record<string, unknown>>): void {
  checkText(document["current-context"], "current-context");
  for (const [list, { settings, texts }] of Object.entries(FORM)) {
    const entries = document[list] ?? [];
    if (!Array.isArray(entries)) throw new Error(`${list} is no list`);
    for (const [index, value] of entries.entries()) {
      const where = `${list}[${index}]`;
      const entry = recordOf(value, where);
      checkText(entry.name, `${where}.name`);
      const set = recordOf(entry[settings] ?? {}, `${where}.${settings}`);
      for (const name of texts) checkText(set[name], `${where}.${settings}.${name}`);
    }
  }
}

function checkText(value: unknown, where: string): void {
  if (value === undefined || value === null || typeof value === "string") return;
  throw new Error(`${where} is no text; put it between quotes`);
}

const UNSUPPORTED = ["auth-provider", "as-uid", "as-groups", "as-user-extra"];

type Refuse = (problem: string) => ServiceError;

function serverSettings(
  { value: cluster, file }: Entry<Cluster>,
  refuse: Refuse,
): Pick<ApiServer, "url" | "ca" | "serverName" | "proxyUrl"> {
  const name = quoted(cluster.name);
  if (cluster.skipTLSVerify) {
    throw refuse(
      `cluster ${name} sets insecure-skip-tls-verify, but the API server's certificate is always ` +
        "verified here; give its CA as certificate-authority-data instead",
    );
  }
  const text = cluster.server.includes("://") ? cluster.server : `https://${cluster.server}`;
  const server = URL.parse(text);
  if (server === null || !/^https?:$/.test(server.protocol)) {
    throw refuse(`cluster ${name}: the server ${quoted(cluster.server)} is no http or https URL`);
  }
  const loopback = isLoopback(server);
  if (server.protocol === "http:" && !loopback) {
    throw refuse(
      `cluster ${name}: ${server.origin} would be read over plain http, which nothing protects; ` +
        "give an https URL (http is for a server on this machine, such as kubectl proxy)",
    );
  }
  const proxyUrl = cluster.proxyUrl ? URL.parse(cluster.proxyUrl) : undefined;
  if (proxyUrl === null || (proxyUrl && !/^https?:$/.test(proxyUrl.protocol))) {
    throw refuse(
      `cluster ${name}: the proxy-url is no http or https URL, and no other proxy works`,
    );
  }
  return {
    url: server.origin + server.pathname.replace(/\/+$/, ""),
    ca: sourceOf(cluster.caData, cluster.caFile, file),
    serverName: cluster.tlsServerName || undefined,
    proxyUrl: loopback ? undefined : proxyUrl?.href,
  };
}

/** Whether a server is on this machine, so that no proxy could reach it. */
function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

function userSettings(
  { value: user, file }: Entry<LoadedUser>,
  { value: cluster, file: clusterFile }: Entry<Cluster>,
  refuse: Refuse,
): ApiUser {
  const name = quoted(user.name);
  const [unsupported] = user.unsupported;
  if (unsupported !== undefined) {
    const instead = unsupported === "auth-provider" ? "; kubectl dropped it in 1.26, use exec" : "";
    throw refuse(`user ${name} sets ${unsupported}, which does not work here${instead}`);
  }
  const cert = sourceOf(user.certData, user.certFile, file);
  const key = sourceOf(user.keyData, user.keyFile, file);
  if ((cert === undefined) !== (key === undefined)) {
    throw refuse(`user ${name} has a client certificate without its key, or a key without it`);
  }
  return {
    certificate: cert !== undefined && key !== undefined ? { cert, key } : undefined,
    tokenFile: user.tokenFile ? absolute(user.tokenFile, file) : undefined,
    token: user.token || undefined,
    basic: user.username ? { username: user.username, password: user.password ?? "" } : undefined,
    exec: user.exec
      ? execPluginOf(user.exec, {
          folder: dirname(file),
          user: user.name,
          cluster,
          ca: sourceOf(cluster.caData, cluster.caFile, clusterFile),
          refuse,
        })
      : undefined,
    impersonates: user.impersonateUser || undefined,
  };
}

/** Data wins over a file, as kubectl has it. */
function sourceOf(
  data: string | undefined,
  path: string | undefined,
  kubeconfig: string,
): Source | undefined {
  if (data) return { text: Buffer.from(data, "base64").toString() };
  return path ? { file: absolute(path, kubeconfig) } : undefined;
}

function absolute(path: string, kubeconfig: string): string {
  return isAbsolute(path) ? path : join(dirname(kubeconfig), path);
}

function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`${what} is no mapping`);
  }
  return { ...value };
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
