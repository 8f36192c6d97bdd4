import { type PoolKey, poolName } from "../pools/pool.ts";
import type { Clock } from "../runtime/clock.ts";
import { Cooldown } from "../runtime/cooldown.ts";
import { ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";

/** Keeps what a store holds within the limits. A pool's size is the bytes of its JSON. */
export class Capacity {
  readonly #log: Log;
  readonly #cooldown: Cooldown;
  #pools = 0;
  #bytes = 0;

  constructor(clock: Clock, log: Log) {
    this.#log = log;
    this.#cooldown = new Cooldown(clock);
  }

  /**
   * Why there is no room for a pool of `bytes`, in place of what is held of it; undefined where there
   * is. A refusal is logged, at most once a minute.
   */
  refusal(key: PoolKey, heldBytes: number | undefined, bytes: number): ServiceError | undefined {
    if (heldBytes === undefined && this.#pools >= limits.livePools) {
      return this.#refuse(key, `${limits.livePools} live pools`);
    }
    const growth = bytes - (heldBytes ?? 0);
    if (growth > 0 && this.#bytes + growth > limits.registrationBytes) {
      return this.#refuse(key, `${limits.registrationBytes} bytes of registrations`);
    }
    return undefined;
  }

  /** Counts a pool that is held, in place of what was held of it. */
  hold(heldBytes: number | undefined, bytes: number): void {
    if (heldBytes === undefined) this.#pools += 1;
    this.#bytes += bytes - (heldBytes ?? 0);
  }

  /** Counts a pool that is held no more. */
  release(bytes: number): void {
    this.#pools -= 1;
    this.#bytes -= bytes;
  }

  #refuse(key: PoolKey, limit: string): ServiceError {
    if (this.#cooldown.restart()) {
      this.#log.warn("registrations are refused: a limit is reached", {
        limit,
        pool: poolName(key),
      });
    }
    return new ServiceError("unavailable", `the service holds its limit of ${limit}`);
  }
}
