import { type PoolKey, poolName } from "../pools/pool.ts";
import type { Clock } from "../runtime/clock.ts";
import { Cooldown } from "../runtime/cooldown.ts";
import { ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";

/** The part of a limit from which on it is near; said once, and again after it was below the other. */
const NEAR = 0.8;
const NOT_NEAR = 0.7;

/** Keeps what a store holds within the limits. A pool's size is the bytes of its JSON. */
export class Capacity {
  readonly #log: Log;
  readonly #cooldown: Cooldown;
  #pools = 0;
  #bytes = 0;
  #isNear = false;

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
    this.#watch();
  }

  /** Counts a pool that is held no more. */
  release(bytes: number): void {
    this.#pools -= 1;
    this.#bytes -= bytes;
    this.#watch();
  }

  #watch(): void {
    const part = Math.max(this.#pools / limits.livePools, this.#bytes / limits.registrationBytes);
    if (part < NOT_NEAR) this.#isNear = false;
    if (part < NEAR || this.#isNear) return;
    this.#isNear = true;
    this.#log.warn("registrations come near a limit; look who registers so much", {
      percent: Math.floor(part * 100),
      pools: this.#pools,
      bytes: this.#bytes,
    });
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
