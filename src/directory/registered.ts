import type { Registration } from "../pools/pool.ts";
import type { LivePools, RegistrationStore } from "../registrations/store.ts";
import { ServiceError } from "../runtime/errors.ts";
import type { Directory } from "./directory.ts";
import type { DirectoryFacts } from "./facts.ts";
import { Listing } from "./listing.ts";
import type { Representation } from "./representation.ts";
import { type Router, routersRepresentation } from "./routers.ts";

/** Lists every live registration, and the routers that were given: registrations mode. */
export class RegisteredDirectory implements Directory {
  readonly #listing = new Listing(poolJson);
  readonly #store: RegistrationStore;
  readonly #routers: Representation;
  #heard = () => {};

  constructor(openStore: (livePools: LivePools) => RegistrationStore, routers: readonly Router[]) {
    this.#store = openStore({
      put: ({ key }, json) => {
        this.#listing.put(key, json);
        this.#heard();
      },
      remove: (key) => {
        this.#listing.remove(key);
        this.#heard();
      },
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
    this.#store.expire();
    return this.#listing.representation(this.#store.isComplete());
  }

  routers(): Representation {
    return this.#routers;
  }

  onChange(heard: () => void): void {
    this.#heard = heard;
  }

  facts(): DirectoryFacts {
    this.#store.expire();
    return {
      pools: { listed: this.#listing.size, registered: this.#store.liveCount() },
      incompleteReasons: [...this.#store.incompleteReasons()],
      slices: null,
      table: this.#store.table(),
    };
  }
}

/** A pool as `GET /pools` shows it, of its registration. */
function poolJson(registration: string): string {
  return `${registration.slice(0, -1)},"relay_identities":[]}`;
}
