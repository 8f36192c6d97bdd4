import { existsSync } from "node:fs";
import { isIPv6 } from "node:net";
import { delimiter, join } from "node:path";
import { ServiceError } from "../runtime/errors.ts";
import { quoted } from "../runtime/text.ts";
import type { ExecPlugin } from "./exec-plugin.ts";
import { apiServerOf, NOBODY } from "./kubeconfig.ts";

/** Text that is given as it stands, or as a file that may change. */
export type Source = { readonly text: string } | { readonly file: string };

/** An API server, and who the service is to it. Nothing that it names has been read yet. */
export interface ApiServer {
  /** Where the settings were found, for messages. */
  readonly foundIn: string;
  /** With the path that comes before `/apis`, and no slash at the end. */
  readonly url: string;
  /** Undefined: the CAs that Bun knows. */
  readonly ca: Source | undefined;
  /** The name that the server's certificate has to hold; undefined for the URL's host. */
  readonly serverName: string | undefined;
  readonly proxyUrl: string | undefined;
  readonly user: ApiUser;
}

export interface ApiUser {
  readonly certificate: { readonly cert: Source; readonly key: Source } | undefined;
  /** Wins over `token`, once it could be read. */
  readonly tokenFile: string | undefined;
  readonly token: string | undefined;
  readonly basic: { readonly username: string; readonly password: string } | undefined;
  /** Used where there is no token. */
  readonly exec: ExecPlugin | undefined;
  /** Whom to act as. */
  readonly impersonates: string | undefined;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** Where Kubernetes puts what a pod is known by. */
export const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Finds the API server: by `KUBECONFIG`, a list of files as kubectl takes it; where that is unset, by
 * the pod's own service account; else by `~/.kube/config`.
 *
 * @throws ServiceError `startup`
 */
export function findApiServer(env: Env, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER): ApiServer {
  const listed = (env.KUBECONFIG ?? "").split(delimiter).filter((path) => path !== "");
  if (listed.length > 0) {
    // As kubectl has it: a list may name files that not every machine has.
    const files = listed.filter((path) => existsSync(path));
    if (files.length === 0) {
      throw new ServiceError(
        "startup",
        `KUBECONFIG names ${listed.map(quoted).join(", ")}, where there is no file; mend it, or unset ` +
          "it to use the pod's own service account",
      );
    }
    return apiServerOf(files);
  }
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (host !== undefined && host !== "" && existsSync(join(serviceAccountFolder, "token"))) {
    return {
      foundIn: "the pod's service account",
      url: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      ca: { file: join(serviceAccountFolder, "ca.crt") },
      serverName: undefined,
      proxyUrl: undefined,
      user: { ...NOBODY, tokenFile: join(serviceAccountFolder, "token") },
    };
  }
  const home = env.HOME === undefined ? undefined : join(env.HOME, ".kube/config");
  if (home !== undefined && existsSync(home)) return apiServerOf([home]);
  throw new ServiceError(
    "startup",
    "there is no API server to read the slices from: set KUBECONFIG, or run in a pod that has a " +
      `service account (${join(serviceAccountFolder, "token")}), or write ${home ?? "~/.kube/config"}`,
  );
}
