import type { ReadyEndpoints } from "../kubernetes/endpoints.ts";
import type { OwnershipRule } from "../kubernetes/ownership.ts";
import type { SliceSink, WatchFacts } from "../kubernetes/reflector.ts";
import {
  dgdNameOf,
  dgdNameOfRelays,
  frontendService,
  relayService,
  type ServiceKey,
} from "../kubernetes/services.ts";
import { SliceIndex } from "../kubernetes/slices.ts";
import {
  compareText,
  keyOf,
  type PoolKey,
  poolName,
  type Registration,
  sortKey,
} from "../pools/pool.ts";
import type { Departure, LivePools, RegistrationStore } from "../registrations/store.ts";
import type { Clock } from "../runtime/clock.ts";
import { ServiceError } from "../runtime/errors.ts";
import type { Fields, Log } from "../runtime/log.ts";
import { Departed } from "./departed.ts";
import type { Directory } from "./directory.ts";
import { endpointUrl, frontendPort } from "./endpoint-urls.ts";
import type { DirectoryFacts } from "./facts.ts";
import { ImportedRouters } from "./imported-routers.ts";
import { Listing } from "./listing.ts";
import { type PoolFacts, poolFacts } from "./pool-facts.ts";
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
  readonly watch: WatchFacts;
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
  /** Its sort key. */
  readonly id: string;
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
  readonly #departed: Departed;
  readonly #synced = Promise.withResolvers<void>();
  #heard = () => {};

  constructor(options: ImportedDirectoryOptions) {
    const { rule, routers, clock, log } = options;
    this.#log = log;
    this.#routerService = routers;
    this.#departed = new Departed(clock);
    this.#routers = new ImportedRouters({ port: routers.port, clock, log });
    this.slices = new SliceIndex({
      rule,
      routers,
      changed: (service) => this.#serviceChanged(service),
      log,
    });
    this.#store = options.openStore({
      put: (id, registration) => this.#putPool(id, registration),
      remove: (id, departure) => this.#removePool(id, departure),
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
      registrations: this.#store.counts,
      incompleteReasons: [
        ...this.#store.incompleteReasons(),
        ...(outdatedReason === undefined ? [] : [outdatedReason]),
      ],
      slices: {
        ...this.slices.counts(),
        isSynced: this.#source.isSynced,
        isCurrent: outdatedReason === undefined,
        watch: this.#source.watch,
      },
      table: this.#store.table(),
    };
  }

  *knownPools(): Generator<string> {
    yield* this.#store.poolIds();
    yield* this.#departed.ids();
    for (const { cluster, namespace, service } of this.slices.services()) {
      const dgdName = dgdNameOfRelays(service);
      if (dgdName === undefined) continue;
      const id = sortKey({ cluster_id: cluster, namespace, dgd_name: dgdName });
      // Those have been named already.
      if (!this.#pools.has(id)) yield id;
    }
  }

  poolFacts(id: string): PoolFacts | undefined {
    this.#store.expire();
    const key = keyOf(id);
    if (key === undefined) return undefined;
    const relays = this.#importedOf(key, relayService);
    const registration = this.#store.registrationOf(id) ?? this.#departed.registrationOf(id);
    if (registration === undefined && relays.length === 0 && !this.#departed.has(id)) {
      return undefined;
    }
    const frontends = this.#importedOf(key, frontendService);
    const relaysReady = relayIdentities(relays).length;
    const frontendsReady = frontendUrls(frontends).length;
    const { isSynced } = this.#source;
    return poolFacts(key, registration, {
      unreadyReason: this.#unreadyReason(),
      lacks: relaysReady === 0 ? [noRelaysReason(key)] : [],
      oddities: frontendsReady === 0 ? [noFrontendsReason(frontends)] : [],
      relaysReady: isSynced ? relaysReady : null,
      frontendsReady: isSynced ? frontendsReady : null,
    });
  }

  #isComplete(): boolean {
    return this.#store.isComplete() && this.#source.outdatedReason() === undefined;
  }

  #unreadyReason(): string | undefined {
    return this.#store.unreadyReason() ?? this.#source.unreadyReason();
  }

  #putPool(id: string, registration: Registration): void {
    this.#heard();
    const known = this.#pools.get(id);
    if (known !== undefined) {
      known.registration = registration;
      this.#join(known);
      return;
    }
    const pool: Pool = { id, registration, isListed: undefined };
    this.#pools.set(id, pool);
    this.#departed.delete(id);
    this.slices.addPool(registration.key.cluster_id);
    this.#join(pool);
  }

  #removePool(id: string, departure: Departure): void {
    this.#heard();
    const pool = this.#pools.get(id);
    this.#pools.delete(id);
    this.#departed.add(id, departure);
    this.#listing.remove(id);
    if (pool !== undefined) this.slices.removePool(pool.registration.key.cluster_id);
  }

  #serviceChanged({ cluster, namespace, service }: ServiceKey): void {
    this.#heard();
    const routers = this.#routerService;
    if (service === routers.service && namespace === routers.namespace) {
      this.#routers.put(cluster, this.slices.endpointsOf({ cluster, namespace, service }));
    }
    const dgdName = dgdNameOf(service);
    if (dgdName === undefined) return;
    const key = { cluster_id: cluster, namespace, dgd_name: dgdName };
    const pool = this.#pools.get(sortKey(key));
    if (pool !== undefined) this.#join(pool);
    else if (service === relayService(dgdName)) this.#noteUnregistered(key);
  }

  /** Remembers relays that go although nobody had registered their pool. */
  #noteUnregistered(key: PoolKey): void {
    const id = sortKey(key);
    // That it was registered once is remembered already, and says more.
    if (this.#departed.registrationOf(id) !== undefined) return;
    if (this.#importedOf(key, relayService).length > 0) this.#departed.delete(id);
    else this.#departed.add(id);
  }

  /** Lists a pool with what is imported of it, or takes it off the list. */
  #join(pool: Pool): void {
    const { registration } = pool;
    const identities = relayIdentities(this.#importedOf(registration.key, relayService));
    if (identities.length === 0) {
      this.#unlist(pool);
      return;
    }
    const frontends = frontendUrls(this.#importedOf(registration.key, frontendService));
    const json = JSON.stringify({ ...registration, frontends, relay_identities: identities });
    this.#listing.put(pool.id, json);
    if (pool.isListed) return;
    pool.isListed = true;
    this.#note("pool listed", { pool: poolName(registration.key) });
  }

  #unlist(pool: Pool): void {
    const { key } = pool.registration;
    this.#listing.remove(pool.id);
    if (pool.isListed === false) return;
    const message = pool.isListed === undefined ? "pool not listed" : "pool no longer listed";
    pool.isListed = false;
    this.#note(message, { pool: poolName(key), reason: noRelaysReason(key) });
  }

  /** What is imported of one of a pool's Services. */
  #importedOf(key: PoolKey, serviceOf: (dgdName: string) => string): readonly ReadyEndpoints[] {
    const { cluster_id: cluster, namespace, dgd_name: dgdName } = key;
    return this.slices.endpointsOf({ cluster, namespace, service: serviceOf(dgdName) });
  }

  /** Logs what became of a pool. The first slices, or the first registrations, are of thousands. */
  #note(message: string, fields: Fields): void {
    this.#log[this.isReady() ? "info" : "debug"](message, fields);
  }
}

function noRelaysReason({ cluster_id: cluster, dgd_name: dgdName }: PoolKey): string {
  const service = relayService(dgdName);
  return `no Ready endpoint of Service ${service} is imported from cluster ${cluster}`;
}

/** Why a pool with these slices of its frontend Service has no frontends. */
function noFrontendsReason(slices: readonly ReadyEndpoints[]): string {
  if (slices.length === 0) return "its frontend Service is not imported, so it has no frontends";
  const isReady = slices.some(({ addresses }) => addresses.length > 0);
  return isReady
    ? "no port of its frontend Service is named http or the only one, so it has no frontends"
    : "its frontend Service has no Ready endpoint, so it has no frontends";
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
