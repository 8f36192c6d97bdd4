import { differences } from "../pools/canonical.ts";
import { poolName, type Registration, sortKey } from "../pools/pool.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { RunClock } from "../runtime/run-clock.ts";
import { Capacity } from "./capacity.ts";
import { Disagreements } from "./disagreements.ts";
import type { LivePools, RegistrationStore } from "./store.ts";

/** A live pool, and its place in the order of renewal. */
interface Lease {
  readonly id: string;
  registration: Registration;
  bytes: number;
  renewedAtMs: number;
  older: Lease | undefined;
  newer: Lease | undefined;
}

export interface MemoryStoreOptions {
  readonly leaseSecs: number;
  readonly livePools: LivePools;
  readonly clock: Clock;
  readonly runClock: RunClock;
  readonly log: Log;
}

/**
 * Keeps registrations in this process; a restart loses them.
 *
 * All leases last equally long, so the order in which they were renewed is the order in which they
 * end. A list in that order makes a renewal and the search for ended leases O(1).
 */
export class MemoryStore implements RegistrationStore {
  readonly #leaseMs: number;
  readonly #livePools: LivePools;
  readonly #runClock: RunClock;
  readonly #log: Log;
  readonly #disagreements: Disagreements;
  readonly #capacity: Capacity;
  readonly #leases = new Map<string, Lease>();
  #oldest: Lease | undefined;
  #newest: Lease | undefined;

  constructor(options: MemoryStoreOptions) {
    this.#leaseMs = options.leaseSecs * 1000;
    this.#livePools = options.livePools;
    this.#runClock = options.runClock;
    this.#log = options.log;
    this.#disagreements = new Disagreements(options.clock, options.log);
    this.#capacity = new Capacity(options.clock, options.log);
  }

  async open(): Promise<void> {}

  close(): void {}

  unreadyReason(): undefined {}

  register(registration: Registration): void {
    const nowMs = this.#expire();
    const id = sortKey(registration.key);
    const lease = this.#leases.get(id);
    if (lease === undefined) {
      this.#add(id, registration, nowMs);
      return;
    }
    // Whether or not its change can be kept, the pool is alive.
    lease.renewedAtMs = nowMs;
    this.#unlink(lease);
    this.#append(lease);
    const fields = differences(lease.registration, registration);
    if (fields.length > 0) this.#replace(lease, registration, fields);
  }

  expire(): void {
    this.#expire();
  }

  isComplete(): boolean {
    // Reading the clock first: that is what finds a pause.
    const nowMs = this.#runClock.nowMs();
    // Whoever is alive registers again within one lease of the start, or of waking up.
    return this.#hasEnded(this.#runClock.resumedAtMs, nowMs);
  }

  #hasEnded(startedAtMs: number, nowMs: number): boolean {
    return startedAtMs + this.#leaseMs < nowMs;
  }

  /** Returns the time that it went by. */
  #expire(): number {
    const nowMs = this.#runClock.nowMs();
    while (this.#oldest !== undefined && this.#hasEnded(this.#oldest.renewedAtMs, nowMs)) {
      const lease = this.#oldest;
      this.#unlink(lease);
      this.#leases.delete(lease.id);
      this.#capacity.release(lease.bytes);
      this.#livePools.remove(lease.registration.key);
      this.#log.info("pool expired", { pool: poolName(lease.registration.key) });
    }
    return nowMs;
  }

  #add(id: string, registration: Registration, nowMs: number): void {
    const bytes = sizeOf(registration);
    const refusal = this.#capacity.refusal(registration.key, undefined, bytes);
    if (refusal !== undefined) throw refusal;
    this.#capacity.hold(undefined, bytes);
    const lease: Lease = {
      id,
      registration,
      bytes,
      renewedAtMs: nowMs,
      older: undefined,
      newer: undefined,
    };
    this.#leases.set(id, lease);
    this.#append(lease);
    this.#livePools.put(registration.key, registration);
    this.#log.info("pool added", { pool: poolName(registration.key) });
  }

  #replace(lease: Lease, registration: Registration, fields: readonly string[]): void {
    const bytes = sizeOf(registration);
    const refusal = this.#capacity.refusal(registration.key, lease.bytes, bytes);
    if (refusal !== undefined) throw refusal;
    this.#capacity.hold(lease.bytes, bytes);
    lease.bytes = bytes;
    lease.registration = registration;
    this.#livePools.put(registration.key, registration);
    this.#disagreements.note(registration.key, fields);
  }

  #append(lease: Lease): void {
    lease.older = this.#newest;
    lease.newer = undefined;
    if (this.#newest === undefined) this.#oldest = lease;
    else this.#newest.newer = lease;
    this.#newest = lease;
  }

  #unlink(lease: Lease): void {
    if (lease.older === undefined) this.#oldest = lease.newer;
    else lease.older.newer = lease.newer;
    if (lease.newer === undefined) this.#newest = lease.older;
    else lease.newer.older = lease.older;
  }
}

/** What a registration takes, as the bytes of its JSON. */
function sizeOf(registration: Registration): number {
  return Buffer.byteLength(JSON.stringify(registration));
}
