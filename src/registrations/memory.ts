import { differences } from "../pools/canonical.ts";
import {
  type PoolKey,
  poolName,
  type Registration,
  registrationJson,
  sortKey,
} from "../pools/pool.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { RunClock } from "../runtime/run-clock.ts";
import { Capacity } from "./capacity.ts";
import { newCounts, type RegistrationCounts } from "./counts.ts";
import { Disagreements } from "./disagreements.ts";
import { freshReason, isFresh } from "./freshness.ts";
import { RenewalOrder } from "./renewal-order.ts";
import type { LivePools, RegistrationFacts, RegistrationStore } from "./store.ts";

/**
 * A text is remembered where it is at most so many times as long as the registration's own JSON, so
 * that what bounds the registrations bounds the texts.
 */
const MOST_TEXT = 2;

/** A live pool. */
interface Lease {
  /** In the order of renewal. */
  readonly place: number;
  readonly id: string;
  /** What it was last registered with, as it was sent; undefined where that is not remembered. */
  text: string | undefined;
  /** The registration as JSON: a fraction of the memory that the object takes. */
  json: string;
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
 * end: a renewal and the search for ended leases are O(1).
 */
export class MemoryStore implements RegistrationStore {
  readonly #leaseMs: number;
  readonly #livePools: LivePools;
  readonly #runClock: RunClock;
  readonly #log: Log;
  readonly #disagreements: Disagreements;
  readonly #capacity: Capacity;
  readonly #counts = newCounts();
  readonly #order = new RenewalOrder();
  readonly #byPlace: (Lease | undefined)[] = [];
  readonly #byId = new Map<string, Lease>();
  /** The places of leases, by what they were last registered with. */
  readonly #placeByText = new Map<string, number>();

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

  renew(text: string): boolean {
    const nowMs = this.#expire();
    const place = this.#placeByText.get(text);
    if (place === undefined) return false;
    this.#order.renew(place, nowMs);
    this.#counts.renewed += 1;
    return true;
  }

  register(registration: Registration, text: string): void {
    const nowMs = this.#expire();
    const id = sortKey(registration.key);
    const lease = this.#byId.get(id);
    if (lease === undefined) {
      this.#add(id, registration, text, nowMs);
      return;
    }
    // Whether or not its change can be kept, the pool is alive.
    this.#order.renew(lease.place, nowMs);
    const fields = differences(parsed(lease.json), registration);
    if (fields.length > 0) this.#replace(lease, registration, text, fields);
    else this.#counts.renewed += 1;
    this.#remember(lease, text);
  }

  expire(): void {
    this.#expire();
  }

  isComplete(): boolean {
    return isFresh(this.#runClock, this.#expire(), this.#leaseMs / 1000);
  }

  incompleteReasons(): Iterable<string> {
    const reason = freshReason(this.#runClock, this.#expire(), this.#leaseMs / 1000);
    return reason === undefined ? [] : [reason];
  }

  poolIds(): Iterable<string> {
    return this.#byId.keys();
  }

  registrationOf(id: string): RegistrationFacts | undefined {
    const lease = this.#byId.get(id);
    if (lease === undefined) return undefined;
    const registeredMsAgo = this.#runClock.nowMs() - this.#order.renewedAtMs(lease.place);
    return {
      isLive: true,
      reasons: [],
      registeredMsAgo,
      leaseLeftMs: Math.max(0, this.#leaseMs - registeredMsAgo),
      writtenIn: null,
      disagreements: this.#disagreements.of(id),
    };
  }

  liveCount(): number {
    return this.#byId.size;
  }

  get counts(): RegistrationCounts {
    return this.#counts;
  }

  table(): null {
    return null;
  }

  #hasEnded(startedAtMs: number, nowMs: number): boolean {
    return startedAtMs + this.#leaseMs < nowMs;
  }

  /** Returns the time that it went by. */
  #expire(): number {
    const nowMs = this.#runClock.nowMs();
    for (;;) {
      const place = this.#order.oldest();
      if (place === undefined || !this.#hasEnded(this.#order.renewedAtMs(place), nowMs)) break;
      this.#remove(place, nowMs);
    }
    return nowMs;
  }

  #add(id: string, registration: Registration, text: string, nowMs: number): void {
    const json = registrationJson(registration, text);
    const bytes = Buffer.byteLength(json);
    this.#hold(registration.key, undefined, bytes);
    const lease: Lease = { place: this.#order.add(nowMs), id, text: undefined, json };
    this.#byPlace[lease.place] = lease;
    this.#byId.set(id, lease);
    this.#remember(lease, text);
    this.#counts.added += 1;
    this.#log.info("pool added", { pool: poolName(registration.key) });
    this.#livePools.put(id, registration, json);
  }

  #remove(place: number, nowMs: number): void {
    const registeredMsAgo = nowMs - this.#order.renewedAtMs(place);
    this.#order.remove(place);
    const lease = this.#byPlace[place];
    if (lease === undefined) return;
    this.#byPlace[place] = undefined;
    this.#byId.delete(lease.id);
    this.#forget(lease);
    this.#capacity.release(Buffer.byteLength(lease.json));
    this.#livePools.remove(lease.id, {
      what: "lease ended",
      endedMsAgo: registeredMsAgo - this.#leaseMs,
      registeredMsAgo,
      writtenIn: null,
      disagreements: this.#disagreements.of(lease.id),
    });
    this.#counts.expired += 1;
    this.#log.info("pool expired", { pool: poolName(parsed(lease.json).key) });
  }

  #replace(
    lease: Lease,
    registration: Registration,
    text: string,
    fields: readonly string[],
  ): void {
    const json = registrationJson(registration, text);
    const [bytesBefore, bytes] = [Buffer.byteLength(lease.json), Buffer.byteLength(json)];
    this.#hold(registration.key, bytesBefore, bytes);
    lease.json = json;
    this.#livePools.put(lease.id, registration, json);
    this.#counts.changed += 1;
    this.#counts.disagreements += 1;
    this.#disagreements.note(registration.key, fields);
  }

  /** Counts a registration's bytes, in place of what is held of it. Throws where there is no room. */
  #hold(key: PoolKey, heldBytes: number | undefined, bytes: number): void {
    const refusal = this.#capacity.refusal(key, heldBytes, bytes);
    if (refusal !== undefined) {
      this.#counts.refused += 1;
      throw refusal;
    }
    this.#capacity.hold(heldBytes, bytes);
  }

  /** Remembers what a lease was registered with, unless white space is the most of it. */
  #remember(lease: Lease, text: string): void {
    this.#forget(lease);
    if (text.length > MOST_TEXT * lease.json.length) return;
    lease.text = text;
    this.#placeByText.set(text, lease.place);
  }

  #forget(lease: Lease): void {
    if (lease.text !== undefined) this.#placeByText.delete(lease.text);
    lease.text = undefined;
  }
}

/** The registration of a lease. */
function parsed(json: string): Registration {
  // It was written by `JSON.stringify` of one.
  return JSON.parse(json) as Registration;
}
