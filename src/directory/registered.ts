import { keyOf, type Registration } from "../pools/pool.ts";
import type { LivePools, RegistrationStore } from "../registrations/store.ts";
import type { Clock } from "../runtime/clock.ts";
import { ServiceError } from "../runtime/errors.ts";
import { Departed } from "./departed.ts";
import type { Directory } from "./directory.ts";
import type { DirectoryFacts } from "./facts.ts";
import { Listing } from "./listing.ts";
import { type PoolFacts, poolFacts } from "./pool-facts.ts";
import type { Representation } from "./representation.ts";
import { type Router, routersRepresentation } from "./routers.ts";

/** Lists every live registration, and the routers that were given: registrations mode. */
export class RegisteredDirectory implements Directory {
  readonly #listing = new Listing(poolJson);
  readonly #store: RegistrationStore;
  readonly #routers: readonly Router[];
  #routersAnswer: Representation | undefined;
  #heard = () => {};
  readonly #departed: Departed;

  constructor(
    openStore: (livePools: LivePools) => RegistrationStore,
    routers: readonly Router[],
    clock: Clock,
  ) {
    this.#departed = new Departed(clock);
    this.#store = openStore({
      put: (id, _, json) => {
        this.#listing.put(id, json);
        this.#departed.delete(id);
        this.#heard();
      },
      remove: (id, departure) => {
        this.#listing.remove(id);
        this.#departed.add(id, departure);
        this.#heard();
      },
    });
    this.#routers = routers;
  }

  open(): Promise<void> {
    return this.#store.open();
  }

  close(): void {
    this.#store.close();
  }

  isReady(): boolean {
    return this.#store.unreadyReason() === undefined;
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
    const reason = this.#store.unreadyReason();
    if (reason !== undefined) throw new ServiceError("unavailable", reason);
    const isComplete = this.#store.isComplete();
    return this.#listing.representation(isComplete);
  }

  routers(): Representation {
    this.#routersAnswer ??= routersRepresentation(this.#routers);
    return this.#routersAnswer;
  }

  onChange(heard: () => void): void {
    this.#heard = heard;
  }

  facts(): DirectoryFacts {
    this.#store.expire();
    return {
      pools: { listed: this.#listing.size, registered: this.#store.liveCount() },
      registrations: this.#store.counts,
      incompleteReasons: [...this.#store.incompleteReasons()],
      slices: null,
      table: this.#store.table(),
    };
  }

  *knownPools(): Generator<string> {
    yield* this.#store.poolIds();
    yield* this.#departed.ids();
  }

  poolFacts(id: string): PoolFacts | undefined {
    this.#store.expire();
    const key = keyOf(id);
    const registration = this.#store.registrationOf(id) ?? this.#departed.registrationOf(id);
    if (key === undefined || registration === undefined) return undefined;
    return poolFacts(key, registration, {
      unreadyReason: this.#store.unreadyReason(),
      lacks: [],
      oddities: [],
      relaysReady: null,
      frontendsReady: null,
    });
  }
}

/** A pool as `GET /pools` shows it, of its registration. */
function poolJson(registration: string): string {
  return `${registration.slice(0, -1)},"relay_identities":[]}`;
}
