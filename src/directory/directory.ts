import type { Registration } from "../pools/pool.ts";
import type { DirectoryFacts } from "./facts.ts";
import type { PoolFacts } from "./pool-facts.ts";
import type { Representation } from "./representation.ts";

/** What clients may ask for. Answers are as of the moment of the call. */
export interface Directory {
  /**
   * Starts to be of use, and resolves once the lists can be told. `register` works before that.
   *
   * @throws ServiceError `startup` when they never will
   */
  open(): Promise<void>;

  /** Whether the lists can be told; true from then on. */
  isReady(): boolean;

  /** Starts the lease of a live pool anew; see `RegistrationStore.renew`. */
  renew(text: string): boolean;
  /**
   * Keeps a registration, which was parsed from `text`, and starts its lease.
   *
   * @throws ServiceError `unavailable` when it could not be kept
   */
  register(registration: Registration, text: string): void | Promise<void>;
  /** Lets go of what has ended by now, so that the log says so in time. */
  expire(): void;
  /**
   * The body of `GET /pools`.
   *
   * @throws ServiceError `unavailable` before it can be told
   */
  pools(): Representation;
  /** The body of `GET /routers`. */
  routers(): Representation;

  /** Has `heard` called when a list may have changed, other than by time alone. It must be quick. */
  onChange(heard: () => void): void;

  /** What the lists are made of; works whether or not they can be told. Costs O(1). */
  facts(): DirectoryFacts;

  /**
   * The sort keys of all pools that something is known of: registered, imported, or gone for less than
   * ten minutes. A few may come twice. May be walked bit by bit while pools come and go.
   */
  knownPools(): Iterable<string>;
  /** Whether a pool is listed and why, by its sort key; undefined where nothing is known of it. */
  poolFacts(id: string): PoolFacts | undefined;

  /** Ends what `open` began. */
  close(): void;
}
