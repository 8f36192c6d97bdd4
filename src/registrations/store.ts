import type { Registration } from "../pools/pool.ts";
import type { Histogram } from "../runtime/histogram.ts";
import type { RegistrationCounts } from "./counts.ts";
import type { DisagreementFacts } from "./disagreements.ts";

/**
 * Hears which pools are live. Called from within the store's own methods, so what it does must be
 * quick and must not call the store.
 */
export interface LivePools {
  /**
   * A pool became live, or its registration changed. Not called for a renewal. `id` is the pool's sort
   * key and `json` its registration: strings that the store keeps anyway, to be shared by whoever
   * needs them.
   */
  put(id: string, registration: Registration, json: string): void;
  /** A pool is live no more. */
  remove(id: string, departure: Departure): void;
}

/** How a pool ceased to be live. */
export interface Departure {
  /** What ended it, in words that go on with how long ago that was. */
  readonly what: "lease ended" | "its item was taken out of the table";
  readonly endedMsAgo: number;
  readonly registeredMsAgo: number;
  /** The region that it was written in; null for a store without regions. */
  readonly writtenIn: string | null;
  readonly disagreements: DisagreementFacts;
}

/** What a store knows of a pool's registration, as of now. Null stands for what it does not know. */
export interface RegistrationFacts {
  readonly isLive: boolean;
  /** In words: where it is not live, why; where it is, what is odd. */
  readonly reasons: readonly string[];
  readonly registeredMsAgo: number | null;
  /** Never below zero. */
  readonly leaseLeftMs: number | null;
  /** The region that it was written in. */
  readonly writtenIn: string | null;
  readonly disagreements: DisagreementFacts;
}

/** What a store has read of its table. */
export interface TableFacts {
  /** The last read that succeeded; null before the first. */
  readonly lastRead: TableRead | null;
  /** Items that can't be decoded and may be of live pools. */
  readonly undecodable: number;
  /** Why the last try to read it failed; null where it did not. */
  readonly lastError: string | null;
  /** Reads of the whole table. */
  readonly reads: OperationFacts;
  /** One for each registration, whatever requests it took. */
  readonly writes: OperationFacts;
}

/** How an operation on the table ended; see `TableFault`. */
export type OperationResult = "ok" | "throttled" | "timeout" | "denied" | "error";

/** What became of the operations of one kind since the start. */
export interface OperationFacts {
  readonly results: Readonly<Record<OperationResult, number>>;
  /** Of those that failed too. */
  readonly duration: Histogram;
}

/** A whole read of the table. */
export interface TableRead {
  /** When it began, on the monotonic clock. */
  readonly beganAtMs: number;
  /** When it began, in milliseconds since 1970. */
  readonly beganAtWallMs: number;
  readonly tookMs: number;
  readonly items: number;
  readonly pages: number;
}

/**
 * Where registrations are kept. A store tells one {@link LivePools} what is live.
 */
export interface RegistrationStore {
  /**
   * Starts to be of use, and resolves once the live pools are known. `register` works before that.
   *
   * @throws ServiceError `startup` when it never will
   */
  open(): Promise<void>;

  /**
   * Starts a lease anew where `text` is, to the letter, what a live pool was last registered with.
   * Then nothing else has to be done, and it need not be parsed. A store may forget texts.
   */
  renew(text: string): boolean;

  /**
   * Keeps a registration in place of the one with the same key, whoever sent that, and starts its
   * lease anew. When this returns, or resolves, the pool is live. `text` is what it was parsed from.
   *
   * The pool stays live for at least the lease from now on: time in which this process can't run is
   * left out. A registration that is the same as the live one (see `differences`) changes nothing
   * but the lease; one that differs is logged as a disagreement.
   *
   * @throws ServiceError `unavailable` when it could not be kept. Then a pool that was live stays as
   *   it was; where only the change could not be kept, its lease starts anew all the same
   */
  register(registration: Registration, text: string): void | Promise<void>;

  /**
   * Brings the live pools up to this moment. To be called before they are read: a pool is never
   * live for longer than its lease because a timer was late.
   */
  expire(): void;

  /** Whether the live pools, which it brings up to this moment, surely are all there are. */
  isComplete(): boolean;
  /** Why `isComplete` says no, in words; nothing where it says yes. */
  incompleteReasons(): Iterable<string>;

  /**
   * The sort keys of all pools that something is known of, live or not. May be walked bit by bit while
   * pools come and go.
   */
  poolIds(): Iterable<string>;
  /** What is known of a pool, by its sort key; undefined where nothing is. */
  registrationOf(id: string): RegistrationFacts | undefined;

  /** How many pools are live, as of the last `expire`. */
  liveCount(): number;
  readonly counts: RegistrationCounts;
  /** What was read of the table; null for a store without one. */
  table(): TableFacts | null;

  /** Why the live pools can't be told yet; undefined once they can, and from then on. */
  unreadyReason(): string | undefined;

  /** Ends what `open` began. */
  close(): void;
}
