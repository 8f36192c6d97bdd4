import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endpointSlicesCrd } from "../fixtures/endpointslices-crd.ts";
import { type Certificates, makeCertificates } from "./certificates.ts";
import type { SliceObject } from "./fake-api-server.ts";
import { dataOf, kubeconfigText } from "./kubeconfig.ts";
import { freePort, Process } from "./service.ts";
import { until } from "./until.ts";

interface Programs {
  readonly kubeApiserver: string;
  readonly etcd: string;
}

/**
 * The programs that a real API server is made of: `KUBE_APISERVER` or what is on the path, and etcd.
 * Says so where one is missing.
 */
export function kubernetesPrograms(): Programs | undefined {
  const kubeApiserver = process.env.KUBE_APISERVER ?? Bun.which("kube-apiserver");
  const etcd = Bun.which("etcd");
  const missing = [
    kubeApiserver ? [] : ["kube-apiserver (set KUBE_APISERVER to it)"],
    etcd ? [] : ["etcd"],
    Bun.which("openssl") ? [] : ["openssl"],
  ].flat();
  if (missing.length > 0 || !kubeApiserver || !etcd) {
    console.log(`skipped: the tests against a real API server need ${missing.join(", ")}`);
    return undefined;
  }
  return { kubeApiserver, etcd };
}

/** Who may do everything. */
const ADMIN_TOKEN = "admin-token";
/** Who may get, list and watch EndpointSlices, and nothing else, until that is revoked. */
export const READER_TOKEN = "reader-token";
/** Who is known, and may do nothing. */
export const STRANGER_TOKEN = "stranger-token";

const READER_ROLE = "slice-reader";
const READY_MS = 60_000;

/** A kube-apiserver over an etcd of its own, on 127.0.0.1, with RBAC. */
export class KubeApiServer implements AsyncDisposable {
  readonly certificates: Certificates;
  readonly url: string;
  readonly #programs: Programs;
  /** Where its certificates are, in which `issueCertificate` makes more. */
  readonly folder: string;
  readonly #etcd: Process;
  readonly #etcdUrl: string;
  readonly #port: number;
  #server: Process;

  private constructor(parts: {
    readonly programs: Programs;
    readonly folder: string;
    readonly certificates: Certificates;
    readonly etcd: Process;
    readonly etcdPort: number;
    readonly port: number;
  }) {
    this.#programs = parts.programs;
    this.folder = parts.folder;
    this.certificates = parts.certificates;
    this.#etcd = parts.etcd;
    this.#etcdUrl = `http://127.0.0.1:${parts.etcdPort}`;
    this.#port = parts.port;
    this.url = `https://127.0.0.1:${parts.port}`;
    this.#server = this.#launch();
  }

  /** Starts one without slices, and waits until it serves them. */
  static async start(programs: Programs): Promise<KubeApiServer> {
    const folder = mkdtempSync(join(tmpdir(), "kube-apiserver-"));
    const certificates = await makeCertificates(folder);
    const users = [
      [ADMIN_TOKEN, "admin", "1", "system:masters"],
      [READER_TOKEN, "reader", "2", "readers"],
      [STRANGER_TOKEN, "stranger", "3", "strangers"],
    ];
    writeFileSync(join(folder, "tokens.csv"), users.map((user) => `${user.join(",")}\n`).join(""));
    const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
    const etcd = new Process([programs.etcd], {
      args: [
        ...["--data-dir", join(folder, "etcd")],
        ...["--listen-client-urls", `http://127.0.0.1:${etcdPort}`],
        ...["--advertise-client-urls", `http://127.0.0.1:${etcdPort}`],
        ...["--listen-peer-urls", `http://127.0.0.1:${peerPort}`],
        ...["--initial-advertise-peer-urls", `http://127.0.0.1:${peerPort}`],
        ...["--initial-cluster", `default=http://127.0.0.1:${peerPort}`],
      ],
    });
    const server = new KubeApiServer({ programs, folder, certificates, etcd, etcdPort, port });
    try {
      await server.#ready();
      if ((await server.ask("GET", "/apis/discovery.k8s.io/v1")).status === 404) {
        const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        await server.send("POST", path, endpointSlicesCrd);
      }
      await until("slices to be served", async () => {
        const { status } = await server.ask("GET", "/apis/discovery.k8s.io/v1/endpointslices");
        return status === 200 ? true : undefined;
      });
      await server.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
        metadata: { name: READER_ROLE },
        rules: [
          {
            apiGroups: ["discovery.k8s.io"],
            resources: ["endpointslices"],
            verbs: ["get", "list", "watch"],
          },
        ],
      });
      await server.grant();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Lets the reader, and the service accounts of the namespace `default`, read slices. */
  async grant(): Promise<void> {
    const apiGroup = "rbac.authorization.k8s.io";
    await this.send("POST", `/apis/${apiGroup}/v1/clusterrolebindings`, {
      metadata: { name: READER_ROLE },
      roleRef: { apiGroup, kind: "ClusterRole", name: READER_ROLE },
      subjects: [
        { apiGroup, kind: "User", name: "reader" },
        { apiGroup, kind: "Group", name: "system:serviceaccounts:default" },
      ],
    });
  }

  /** Takes that back. */
  async revoke(): Promise<void> {
    await this.send(
      "DELETE",
      `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${READER_ROLE}`,
    );
  }

  /** Writes a slice, whatever was there, in a namespace that is made where there is none. */
  async put(slice: SliceObject): Promise<void> {
    const { namespace, name } = slice.metadata;
    const path = slicesOf(namespace);
    const body = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", ...slice };
    const created = await this.ask("POST", path, body);
    if (created.status === 409) {
      const present = await this.send("GET", `${path}/${name}`);
      const { resourceVersion } = metadataOf(present);
      const metadata = { ...slice.metadata, resourceVersion };
      await this.send("PUT", `${path}/${name}`, { ...body, metadata });
    } else if (created.status === 404) {
      const made = await this.ask("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
      // Two tests may be about to make it.
      if (!made.ok && made.status !== 409) throw new Error(`${namespace}: ${await made.text()}`);
      await this.put(slice);
    } else if (!created.ok) throw new Error(`POST ${path}: ${await created.text()}`);
  }

  async delete(namespace: string, name: string): Promise<void> {
    await this.send("DELETE", `${slicesOf(namespace)}/${name}`);
  }

  /** Makes etcd forget what was before now. */
  async compact(): Promise<void> {
    const found = await this.#askEtcd("/v3/kv/range", { key: dataOf("nothing") });
    const { revision } = found.header;
    await this.#askEtcd("/v3/kv/compaction", { revision, physical: true });
  }

  /**
   * Makes a service account anew, so that its earlier tokens are void, and a token of it.
   *
   * @returns a token that lasts an hour
   */
  async newServiceAccountToken(name: string): Promise<string> {
    const path = "/api/v1/namespaces/default/serviceaccounts";
    await this.ask("DELETE", `${path}/${name}`);
    await this.send("POST", path, { metadata: { name } });
    const made = await this.send("POST", `${path}/${name}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: 3600, audiences: [ISSUER] },
    });
    // The form is authentication.k8s.io/v1's.
    return (made as { readonly status: { readonly token: string } }).status.token;
  }

  /** A kubeconfig with a token, or whatever else shows who it is, such as `{ tokenFile }`. */
  kubeconfig(user: Readonly<Record<string, unknown>>): string {
    return kubeconfigText({ cluster: this.cluster, user });
  }

  /** How a kubeconfig names it. */
  get cluster() {
    const ca = readFileSync(this.certificates.root, "utf8");
    return { server: this.url, "certificate-authority-data": dataOf(ca) };
  }

  /** Ends the server as a crash does; etcd stays. */
  async stop(): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }

  /** Starts the server that was stopped, and waits until it serves. */
  async startAgain(): Promise<void> {
    this.#server = this.#launch();
    await this.#ready();
  }

  /** Asks as the one who may do everything. */
  async ask(method: string, path: string, body?: object): Promise<Response> {
    return await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, "Content-Type": "application/json" },
      tls: { ca: readFileSync(this.certificates.root, "utf8") },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Asks for what has to work, and returns the answer. */
  async send(method: string, path: string, body?: object): Promise<unknown> {
    const response = await this.ask(method, path, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#server[Symbol.asyncDispose](), this.#etcd[Symbol.asyncDispose]()]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #launch(): Process {
    // Go reads no EC key in the form that openssl gives it.
    const { root, chain, key, otherKey } = this.certificates;
    return new Process([this.#programs.kubeApiserver], {
      args: [
        `--etcd-servers=${this.#etcdUrl}`,
        "--bind-address=127.0.0.1",
        `--secure-port=${this.#port}`,
        `--cert-dir=${this.folder}`,
        `--tls-cert-file=${chain}`,
        `--tls-private-key-file=${key}`,
        `--client-ca-file=${root}`,
        `--service-account-issuer=${ISSUER}`,
        `--service-account-signing-key-file=${otherKey}`,
        `--service-account-key-file=${otherKey}`,
        "--authorization-mode=RBAC",
        `--token-auth-file=${join(this.folder, "tokens.csv")}`,
        "--service-cluster-ip-range=10.96.0.0/16",
        "--disable-admission-plugins=ServiceAccount",
        // Where v1 is a custom resource, the group must have no other version.
        "--runtime-config=discovery.k8s.io/v1beta1=false",
      ],
    });
  }

  async #ready(): Promise<void> {
    await until(
      "kube-apiserver to be ready",
      async () => {
        if (!this.#server.isRunning) throw new Error(`it has ended\n${this.#server.said}`);
        try {
          return (await this.ask("GET", "/readyz")).status === 200 ? true : undefined;
        } catch {
          return undefined;
        }
      },
      READY_MS,
    );
  }

  async #askEtcd(path: string, body: object): Promise<{ header: { revision: string } }> {
    const response = await fetch(this.#etcdUrl + path, {
      method: "POST",
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`etcd ${path}: ${text}`);
    // Every answer of etcd has this header.
    return JSON.parse(text) as { header: { revision: string } };
  }
}

const ISSUER = "https://kubernetes.default.svc";

function slicesOf(namespace: string): string {
  return `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
}

function metadataOf(object: unknown): { readonly resourceVersion: string } {
  // Every object of the API has this.
  return (object as { readonly metadata: { readonly resourceVersion: string } }).metadata;
}
