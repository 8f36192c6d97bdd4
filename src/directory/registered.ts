import type { PoolKey, Registration } from "../pools/pool.ts";
import type { LivePools, RegistrationStore } from "../registrations/store.ts";
import { ServiceError } from "../runtime/errors.ts";
import type { Directory } from "./directory.ts";
import { Listing } from "./listing.ts";
import type { Representation } from "./representation.ts";
import { type Router, routersRepresentation } from "./routers.ts";

/** Lists every live registration, and the routers that were given: registrations mode. */
export class RegisteredDirectory implements Directory {
  readonly #listing = new Listing();
  readonly #store: RegistrationStore;
  readonly #routers: Representation;

  constructor(openStore: (livePools: LivePools) => RegistrationStore, routers: readonly Router[]) {
    this.#store = openStore({
      put: (key, registration) => this.#listing.put(key, poolJson(registration)),
      remove: (key: PoolKey) => this.#listing.remove(key),
    });
    this.#routers = routersRepresentation(routers);
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

  register(registration: Registration): void | Promise<void> {
    return this.#store.register(registration);
  }

  expire(): void {
    this.#store.expire();
  }

  pools(): Representation {
    const reason = this.#store.unreadyReason();
    if (reason !== undefined) throw new ServiceError("unavailable", reason);
    this.#store.expire();
    return this.#listing.representation(this.#store.isComplete());
  }

  routers(): Representation {
    return this.#routers;
  }
}

/** A pool as `GET /pools` shows it. */
function poolJson(registration: Registration): string {
  return JSON.stringify({ ...registration, relay_identities: [] });
}
