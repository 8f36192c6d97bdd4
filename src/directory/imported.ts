import type { ReadyEndpoints } from "../kubernetes/endpoints.ts";
import type { OwnershipRule } from "../kubernetes/ownership.ts";
import type { SliceSink } from "../kubernetes/reflector.ts";
import {
  dgdNameOf,
  frontendService,
  relayService,
  type ServiceKey,
} from "../kubernetes/services.ts";
import { SliceIndex } from "../kubernetes/slices.ts";
import { compareText, type PoolKey, poolName, type Registration, sortKey } from "../pools/pool.ts";
import type { LivePools, RegistrationStore } from "../registrations/store.ts";
import type { Clock } from "../runtime/clock.ts";
import { ServiceError } from "../runtime/errors.ts";
import type { Fields, Log } from "../runtime/log.ts";
import type { Directory } from "./directory.ts";
import { endpointUrl, frontendPort } from "./endpoint-urls.ts";
import type { DirectoryFacts } from "./facts.ts";
import { ImportedRouters } from "./imported-routers.ts";
import { Listing } from "./listing.ts";
import type { Representation } from "./representation.ts";
import type { RouterService } from "./routers.ts";

/** What keeps a {@link SliceSink} up to date. */
export interface SliceSource {
  start(): void;
  stop(): void;
  /** Why the slices can't be told yet; undefined once the sink has had all, and from then on. */
  unreadyReason(): string | undefined;
  /** Whether the sink has had all at least once. */
  readonly isSynced: boolean;
  /** Why the sink may not have heard of all that happened until just now; undefined where it has. */
  outdatedReason(): string | undefined;
}

export interface ImportedDirectoryOptions {
  readonly openStore: (livePools: LivePools) => RegistrationStore;
  readonly openSlices: (sink: SliceSink) => SliceSource;
  readonly rule: OwnershipRule;
  readonly routers: RouterService;
  readonly clock: Clock;
  readonly log: Log;
}

interface Pool {
  registration: Registration;
  /** Undefined until it has first been looked at. */
  isListed: boolean | undefined;
}

/**
 * Lists the live registrations whose relays are imported, with what is imported of them: karmada and
 * mcs mode. A pool is looked at again when it is registered in another way, or when the endpoints of
 * one of its two Services change, and no other pool with it.
 */
export class ImportedDirectory implements Directory {
  readonly slices: SliceIndex;
  readonly #store: RegistrationStore;
  readonly #source: SliceSource;
  readonly #routerService: RouterService;
  readonly #routers: ImportedRouters;
  readonly #log: Log;
  readonly #pools = new Map<string, Pool>();
  readonly #listing = new Listing();
  readonly #synced = Promise.withResolvers<void>();
  #heard = () => {};

  constructor(options: ImportedDirectoryOptions) {
    const { rule, routers, clock, log } = options;
    this.#log = log;
    this.#routerService = routers;
    this.#routers = new ImportedRouters({ port: routers.port, clock, log });
    this.slices = new SliceIndex({
      rule,
      routers,
      changed: (service) => this.#serviceChanged(service),
      log,
    });
    this.#store = options.openStore({
      put: (registration) => this.#putPool(registration),
      remove: (key) => this.#removePool(key),
    });
    this.#source = options.openSlices({
      replace: (slices) => {
        this.slices.replace(slices);
        this.#synced.resolve();
      },
      put: (slice) => this.slices.put(slice),
      remove: (slice) => this.slices.remove(slice),
    });
  }

  async open(): Promise<void> {
    this.#source.start();
    await Promise.all([this.#store.open(), this.#synced.promise]);
  }

  close(): void {
    this.#source.stop();
    this.#store.close();
  }

  isReady(): boolean {
    return this.#unreadyReason() === undefined;
  }

  renew(text: string): boolean {
    return this.#store.renew(text);
  }

  register(registration: Registration, text: string): void | Promise<void> {
    return this.#store.register(registration, text);
  }

  expire(): void {
    this.#store.expire();
  }

  pools(): Representation {
    const reason = this.#unreadyReason();
    if (reason !== undefined) throw new ServiceError("unavailable", reason);
    this.#store.expire();
    return this.#listing.representation(this.#isComplete());
  }

  routers(): Representation {
    const reason = this.#source.unreadyReason();
    if (reason !== undefined) throw new ServiceError("unavailable", reason);
    // Which clusters are live decides whose a slice with a hand-made name is.
    this.#store.expire();
    return this.#routers.representation();
  }

  onChange(heard: () => void): void {
    this.#heard = heard;
  }

  facts(): DirectoryFacts {
    this.#store.expire();
    const outdatedReason = this.#source.outdatedReason();
    return {
      pools: { listed: this.#listing.size, registered: this.#store.liveCount() },
      incompleteReasons: [
        ...this.#store.incompleteReasons(),
        ...(outdatedReason === undefined ? [] : [outdatedReason]),
      ],
      slices: {
        ...this.slices.counts(),
        isSynced: this.#source.isSynced,
        isCurrent: outdatedReason === undefined,
      },
      table: this.#store.table(),
    };
  }

  #isComplete(): boolean {
    return this.#store.isComplete() && this.#source.outdatedReason() === undefined;
  }

  #unreadyReason(): string | undefined {
    return this.#store.unreadyReason() ?? this.#source.unreadyReason();
  }

  #putPool(registration: Registration): void {
    this.#heard();
    const { key } = registration;
    const id = sortKey(key);
    const known = this.#pools.get(id);
    if (known !== undefined) {
      known.registration = registration;
      this.#join(known);
      return;
    }
    const pool: Pool = { registration, isListed: undefined };
    this.#pools.set(id, pool);
    this.slices.addPool(key.cluster_id);
    this.#join(pool);
  }

  #removePool(key: PoolKey): void {
    this.#heard();
    this.#pools.delete(sortKey(key));
    this.#listing.remove(key);
    this.slices.removePool(key.cluster_id);
  }

  #serviceChanged({ cluster, namespace, service }: ServiceKey): void {
    this.#heard();
    const routers = this.#routerService;
    if (service === routers.service && namespace === routers.namespace) {
      this.#routers.put(cluster, this.slices.endpointsOf({ cluster, namespace, service }));
    }
    const dgdName = dgdNameOf(service);
    if (dgdName === undefined) return;
    const pool = this.#pools.get(sortKey({ cluster_id: cluster, namespace, dgd_name: dgdName }));
    if (pool !== undefined) this.#join(pool);
  }

  /** Lists a pool with what is imported of it, or takes it off the list. */
  #join(pool: Pool): void {
    const { registration } = pool;
    const { cluster_id: cluster, namespace, dgd_name: dgdName } = registration.key;
    const imported = (service: string) => this.slices.endpointsOf({ cluster, namespace, service });
    const identities = relayIdentities(imported(relayService(dgdName)));
    if (identities.length === 0) {
      this.#unlist(pool);
      return;
    }
    const frontends = frontendUrls(imported(frontendService(dgdName)));
    const json = JSON.stringify({ ...registration, frontends, relay_identities: identities });
    this.#listing.put(registration.key, json);
    if (pool.isListed) return;
    pool.isListed = true;
    this.#note("pool listed", { pool: poolName(registration.key) });
  }

  #unlist(pool: Pool): void {
    const { key } = pool.registration;
    this.#listing.remove(key);
    if (pool.isListed === false) return;
    const message = pool.isListed === undefined ? "pool not listed" : "pool no longer listed";
    pool.isListed = false;
    const relays = relayService(key.dgd_name);
    this.#note(message, {
      pool: poolName(key),
      reason: `no Ready endpoint of Service ${relays} is imported from cluster ${key.cluster_id}`,
    });
  }

  /** Logs what became of a pool. The first slices, or the first registrations, are of thousands. */
  #note(message: string, fields: Fields): void {
    this.#log[this.isReady() ? "info" : "debug"](message, fields);
  }
}

/** The relays as the wire names them. Several slices may name one, so repeats are left out. */
function relayIdentities(slices: readonly ReadyEndpoints[]): string[] {
  const addresses = slices.flatMap((slice) => slice.addresses);
  return sortedSet(addresses.map((address) => `ip:${address}`));
}

function frontendUrls(slices: readonly ReadyEndpoints[]): string[] {
  const urls = slices.flatMap(({ addresses, ports }) => {
    const port = frontendPort(ports);
    return port === undefined ? [] : addresses.map((address) => endpointUrl(address, port));
  });
  return sortedSet(urls);
}

function sortedSet(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort(compareText);
}
