import { frontendsOf, objectOf, relaysOf } from "../support/imports.ts";
import { KubeApiServer, kubernetesPrograms, READER_TOKEN } from "../support/kube-apiserver.ts";
import { kubeconfigText } from "../support/kubeconfig.ts";
import { endpointsAt } from "../support/slices.ts";
import type { Pool } from "./pools.ts";
import type { Random } from "./random.ts";
import { TcpGate } from "./tcp-gate.ts";

/** What is imported of a pool, and since when. */
export interface Imported {
  readonly relays: readonly string[];
  readonly frontends: readonly string[];
  /** When the API server had the last change for certain; infinite while one is under way. */
  readonly sinceMs: number;
}

/** A real API server with the slices of pools. */
export class Cluster implements AsyncDisposable {
  readonly #server: KubeApiServer;
  readonly #imported = new Map<Pool, Imported>();

  private constructor(server: KubeApiServer) {
    this.#server = server;
  }

  /** Undefined, with a word on it, where the programs are missing. */
  static async start(): Promise<Cluster | undefined> {
    const programs = kubernetesPrograms();
    return programs && new Cluster(await KubeApiServer.start(programs));
  }

  openGate(): Promise<TcpGate> {
    return TcpGate.start(Number(new URL(this.#server.url).port));
  }

  /** How a replica reaches it through a gate. */
  kubeconfig(gate: TcpGate): string {
    return kubeconfigText({
      cluster: { ...this.#server.cluster, server: gate.url },
      user: { token: READER_TOKEN },
    });
  }

  importedOf(pool: Pool): Imported {
    return this.#imported.get(pool) ?? { relays: [], frontends: [], sinceMs: 0 };
  }

  /** Changes which relays and frontends of a pool are Ready. */
  async change(pool: Pool, random: Random, { hasRelays }: { readonly hasRelays: boolean }) {
    const last = () => Math.floor(random.between(1, 250));
    const relays = hasRelays ? [`10.1.0.${last()}`, `10.1.1.${last()}`] : [];
    const frontends = [`10.2.0.${last()}`];
    this.#imported.set(pool, { relays, frontends, sinceMs: Number.POSITIVE_INFINITY });
    const relaySlice = objectOf(
      relaysOf("mcs", pool.name, { cluster: "west", endpoints: endpointsAt(...relays) }),
    );
    const { namespace, name } = relaySlice.metadata;
    // A slice without endpoints, and no slice, come to the same.
    if (!hasRelays && random.chance(0.5)) {
      await this.#server.delete(namespace, name).catch(() => this.#server.put(relaySlice));
    } else {
      await this.#server.put(relaySlice);
    }
    await this.#server.put(
      objectOf(
        frontendsOf("mcs", pool.name, { cluster: "west", endpoints: endpointsAt(...frontends) }),
      ),
    );
    this.#imported.set(pool, { relays, frontends, sinceMs: Date.now() });
  }

  /** Ends the API server as a crash does, and starts it again. */
  async crash(downMs: number): Promise<void> {
    await this.#server.stop();
    await Bun.sleep(downMs);
    await this.#server.startAgain();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
