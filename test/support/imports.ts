import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { EndpointPort, EndpointSlice } from "../../src/kubernetes/slice-api.ts";
import { makeCertificates } from "./certificates.ts";
import { inTurn, launchOf, sourceCommand, type Table } from "./dynamodb.ts";
import { FakeApiServer, type SliceObject } from "./fake-api-server.ts";
import { kubeconfigText } from "./kubeconfig.ts";
import { once, Service, temporaryFolder } from "./service.ts";
import { clusterOf } from "./slice-client.ts";
import { endpointsAt, karmadaSlice, mcsSlice, type SliceParts } from "./slices.ts";

export type Mode = "karmada" | "mcs";

export const MODES: readonly Mode[] = ["karmada", "mcs"];

/** What each mode asks the API server for. */
export const SELECTORS = { karmada: karmada.labelSelector, mcs: mcs.labelSelector };

/** The cluster of pools that nothing else is said of. */
export const WEST = "aws-west";

/** The only token that the API servers of these tests let in. */
export const TOKEN = "reader";

/** A slice of a Service as the mode's implementation imports it. */
export function imported(
  mode: Mode,
  cluster: string,
  service: string,
  parts: SliceParts = {},
): EndpointSlice {
  return (mode === "mcs" ? mcsSlice : karmadaSlice)(cluster, service, parts);
}

/** A slice as it is written to an API server. */
export function objectOf({ metadata, addressType, endpoints, ports }: EndpointSlice): SliceObject {
  const { name, namespace, labels, annotations } = metadata;
  return {
    metadata: { name, namespace, labels: labels ?? {}, annotations: annotations ?? {} },
    addressType,
    endpoints: endpoints ?? [],
    ports: ports ?? [],
  };
}

const RELAY_PORTS: readonly EndpointPort[] = [{ name: "relay", port: 9000 }];
const FRONTEND_PORTS: readonly EndpointPort[] = [{ name: "http", port: 8000 }];

/** The Ready relays of a pool. */
export function relaysOf(
  mode: Mode,
  name: string,
  { cluster = WEST, ...parts }: SliceParts & { readonly cluster?: string } = {},
): EndpointSlice {
  const rest = { endpoints: endpointsAt("10.1.0.1"), ports: RELAY_PORTS, ...parts };
  return imported(mode, cluster, `${name}-pool-relay`, rest);
}

/** The Ready frontends of a pool. */
export function frontendsOf(
  mode: Mode,
  name: string,
  { cluster = WEST, ...parts }: SliceParts & { readonly cluster?: string } = {},
): EndpointSlice {
  const rest = { endpoints: endpointsAt("10.2.0.1"), ports: FRONTEND_PORTS, ...parts };
  return imported(mode, cluster, `${name}-frontend`, rest);
}

const folder = mkdtempSync(join(tmpdir(), "imports-"));
// Not sooner: the files of a run share it.
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** The CA and the certificates of the API servers, which are made once. */
export const certificates = once(() => makeCertificates(folder));

/** Where `issueCertificate` makes more of them. */
export const certificateFolder = folder;

export interface SceneOptions {
  readonly mode?: Mode;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** In seconds. */
  readonly lease?: number;
  /** Where registrations are kept, in place of the memory. */
  readonly table?: Table | undefined;
  /** The user of the kubeconfig, in place of one with the token. */
  readonly user?: Readonly<Record<string, unknown>>;
  /** What the kubeconfig says of the cluster besides its address, or in place of that. */
  readonly cluster?: Readonly<Record<string, unknown>>;
  readonly isStrict?: boolean;
  /** Is done to the API server before the service starts. */
  readonly prepare?: (fake: FakeApiServer) => void | Promise<void>;
}

/** An API server, and a service that reads its slices. */
export class Scene implements AsyncDisposable {
  readonly mode: Mode;
  readonly fake: FakeApiServer;
  readonly service: Service;

  private constructor(mode: Mode, fake: FakeApiServer, service: Service) {
    this.mode = mode;
    this.fake = fake;
    this.service = service;
  }

  /** Starts both, and waits until the service serves; it may not have read the slices yet. */
  static async start({ isStrict = false, prepare, ...rest }: SceneOptions = {}): Promise<Scene> {
    const pair = await certificates();
    const fake = await FakeApiServer.start({ certificates: pair, isStrict });
    fake.allowed = new Set([TOKEN]);
    await prepare?.(fake);
    try {
      const cluster = { ...clusterOf(fake, pair.root), ...rest.cluster };
      return new Scene(rest.mode ?? "mcs", fake, await startImporting({ ...rest, cluster }));
    } catch (error) {
      fake[Symbol.dispose]();
      throw error;
    }
  }

  get url(): string {
    return this.service.url;
  }

  /** Writes slices to the API server. */
  put(...slices: readonly EndpointSlice[]): void {
    for (const slice of slices) this.fake.put(objectOf(slice));
  }

  /** Takes a slice away from the API server. */
  delete({ metadata: { namespace, name } }: EndpointSlice): void {
    this.fake.delete(namespace, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    this.fake[Symbol.dispose]();
  }
}

/** Starts a service that reads the slices of what the kubeconfig's `cluster` names. */
export async function startImporting({
  mode = "mcs",
  command = sourceCommand,
  args = [],
  env = {},
  lease = 3,
  table,
  user = { token: TOKEN },
  cluster = {},
}: Omit<SceneOptions, "isStrict" | "prepare">): Promise<Service> {
  using folder = temporaryFolder();
  const kubeconfig = join(folder.path, "config");
  await Bun.write(kubeconfig, kubeconfigText({ cluster, user }));
  const ofTable = table === undefined ? {} : launchOf(table, { lease });
  const timing = ["--heartbeat-interval-secs", "1", "--lease-duration-secs", String(lease)];
  return await inTurn(() =>
    Service.start(command, {
      args: [...(ofTable.args ?? timing), "--pool-discovery", mode, ...args],
      env: { ...ofTable.env, ...env, KUBECONFIG: kubeconfig },
    }),
  );
}

/** What a list says of a path: its status and its body. */
export async function answerOf(url: string, path: string): Promise<readonly [number, string]> {
  const response = await fetch(url + path, { headers: { "Accept-Encoding": "identity" } });
  return [response.status, await response.text()];
}
