/** What a kubeconfig says of its one cluster and its one user, in the kubeconfig's own names. */
export interface KubeconfigParts {
  readonly cluster: Readonly<Record<string, unknown>>;
  readonly user?: Readonly<Record<string, unknown>>;
}

/** A kubeconfig as text. JSON is YAML. */
export function kubeconfigText({ cluster, user = {} }: KubeconfigParts): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test-cluster", cluster }],
    users: [{ name: "test-user", user }],
    contexts: [{ name: "test", context: { cluster: "test-cluster", user: "test-user" } }],
  });
}

/** Base64, as a kubeconfig holds files. */
export function dataOf(text: string): string {
  return Buffer.from(text).toString("base64");
}
