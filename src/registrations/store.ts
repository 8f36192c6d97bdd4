import type { PoolKey, Registration } from "../pools/pool.ts";

/**
 * Hears which pools are live. Called from within the store's own methods, so what it does must be
 * quick and must not call the store.
 */
export interface LivePools {
  /** A pool became live, or its registration changed. Not called for a renewal. */
  put(key: PoolKey, registration: Registration): void;
  /** A pool's lease ended. */
  remove(key: PoolKey): void;
}

/**
 * Where registrations are kept. A store tells one {@link LivePools} what is live; both move only
 * while one of the methods below runs.
 */
export interface RegistrationStore {
  /**
   * Keeps a registration in place of the one with the same key, whoever sent that, and starts its
   * lease anew. When this returns, the pool is live.
   *
   * The pool stays live for at least the lease from now on: time in which this process can't run is
   * left out. A registration that is the same as the live one (see `differences`) changes nothing
   * but the lease; one that differs is logged as a disagreement.
   *
   * @throws ServiceError `unavailable` when it could not be kept. Then a pool that was live stays as
   *   it was; where only the change could not be kept, its lease starts anew all the same
   */
  register(registration: Registration): void | Promise<void>;

  /**
   * Lets go of the pools whose lease has ended by now. To be called before the live pools are read:
   * a pool is never live for longer than its lease because a timer was late.
   */
  expire(): void;

  /** Whether the live pools surely are all there are, as of now. */
  isComplete(): boolean;
}
