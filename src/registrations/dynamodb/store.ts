import { differences } from "../../pools/canonical.ts";
import {
  type PoolKey,
  poolName,
  type Registration,
  registrationJson,
  sortKey,
} from "../../pools/pool.ts";
import { type Cancel, type Clock, DeadlineError, withDeadline } from "../../runtime/clock.ts";
import { Cooldown } from "../../runtime/cooldown.ts";
import { messageOf, ServiceError } from "../../runtime/errors.ts";
import type { Log } from "../../runtime/log.ts";
import type { RunClock } from "../../runtime/run-clock.ts";
import { Capacity } from "../capacity.ts";
import { newCounts, type RegistrationCounts } from "../counts.ts";
import { Disagreements } from "../disagreements.ts";
import { freshReason } from "../freshness.ts";
import type {
  Departure,
  LivePools,
  RegistrationFacts,
  RegistrationStore,
  TableFacts,
  TableRead,
} from "../store.ts";
import { type Decoded, decode, parseText, type Renewal } from "./item.ts";
import { Operations } from "./operations.ts";
import { type RegistrationTable, TableError } from "./table.ts";

export interface DynamoStoreOptions {
  readonly table: RegistrationTable;
  /** The region that this replica writes from. */
  readonly region: string;
  readonly leaseSecs: number;
  readonly heartbeatIntervalSecs: number;
  readonly pollIntervalSecs: number;
  readonly replicationGraceSecs: number;
  readonly skewSecs: number;
  readonly livePools: LivePools;
  readonly clock: Clock;
  readonly runClock: RunClock;
  readonly log: Log;
}

/** What the table, or a later write of our own, says of a pool. */
interface Record {
  readonly key: PoolKey;
  /**
   * The registration as it was read or written. It is parsed when it is needed, which is seldom, and
   * is a fraction of what the object would take; and an item that says the same is not parsed at all.
   */
  readonly text: string;
  /** What the text says, from when it is parsed until it has been told. */
  readonly parsed: Registration | undefined;
  readonly renewal: Renewal;
  /** When what a write of our own took the place of had been renewed, if ever; undefined for a read. */
  readonly replacedMs: number | null | undefined;
}

interface Pool extends Record {
  readonly id: string;
  readonly bytes: number;
  /** When our last write of it was answered, as a number of `#events`; 0 for never. */
  readonly writtenAt: number;
  /** When the last read that had it began, by the same numbers. */
  readonly foundAt: number;
  readonly isListed: boolean;
}

type Maybe<T> = { readonly [Name in keyof T]: T[Name] | undefined };
type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** An item of a read that is under way. */
interface Found extends Record {
  readonly id: string;
  /** The pool that it is of, where that was known when the item came. */
  readonly known: Mutable<Pool> | undefined;
}

/** What a read finds in the whole table. */
interface Snapshot {
  /** The pools whose items say nothing new. */
  readonly unchanged: Mutable<Pool>[];
  readonly pools: Found[];
  /** Items that can't be decoded, and until when each may stand for a live pool. */
  readonly undecodable: Map<string, number>;
  /** The items that were renewed in the future by more than the skew. */
  readonly future: string[];
  /** Items and pages so far, whatever they hold. */
  items: number;
  pages: number;
}

/** A read of the table may take this long, or the lease where that is shorter. */
const READ_DEADLINE_MS = { least: 1000, most: 10_000 } as const;
/** The list is no longer complete when the last successful read began so many polls ago. */
const STALE_POLLS = 3;
/** While DynamoDB throttles, reads are up to so many polls apart. */
const THROTTLED_POLLS = 4;
/** How long to wait before the table is tried again at the start. */
const RETRY_MS = { least: 1000, most: 5000 } as const;

/**
 * Keeps registrations in a DynamoDB table that any number of replicas share.
 *
 * The live pools are those of the last whole read of the table, and on top of it what this replica
 * wrote since that read began. Who is live is a question to the wall clock, since other machines
 * started the leases. Between two questions nothing can change before the first pool's next moment
 * of change has passed; so most cost O(1), and only then are all pools looked at.
 */
export class DynamoStore implements RegistrationStore {
  readonly #options: DynamoStoreOptions;
  readonly #disagreements: Disagreements;
  readonly #capacity: Capacity;
  readonly #counts = newCounts();
  readonly #reads: Operations;
  readonly #writes: Operations;
  readonly #failureCooldown: Cooldown;
  readonly #futureCooldown: Cooldown;
  readonly #pools = new Map<string, Mutable<Pool>>();
  #undecodable = new Map<string, number>();
  /** Counts answered writes and begun reads, to tell which came first. */
  #events = 0;
  #lastRead: TableRead | undefined;
  /** All pauses of the process up to then. */
  #pausedBeforeReadMs = 0;
  #lastError: string | undefined;

  /** The moment that the live pools are as of. */
  #asOfMs = Number.NEGATIVE_INFINITY;
  /** The last moment up to which they stay as they are. */
  #unchangedUntilMs = Number.NEGATIVE_INFINITY;
  #live = 0;
  #inGrace = 0;
  #undecodableLive = 0;

  #cancelTimer: Cancel = () => {};
  #isClosed = false;

  constructor(options: DynamoStoreOptions) {
    this.#options = options;
    this.#disagreements = new Disagreements(options.clock, options.log);
    this.#capacity = new Capacity(options.clock, options.log);
    this.#reads = new Operations(options.clock);
    this.#writes = new Operations(options.clock);
    this.#failureCooldown = new Cooldown(options.clock);
    this.#futureCooldown = new Cooldown(options.clock);
  }

  async open(): Promise<void> {
    const { table, log, clock } = this.#options;
    let isChecked = false;
    for (let retryMs: number = RETRY_MS.least; !this.#isClosed; ) {
      try {
        if (!isChecked) {
          const oddities = await this.#within(this.#readDeadlineMs(), (signal) =>
            table.check(signal),
          );
          for (const oddity of oddities)
            log.warn("the check of the table found something", { oddity });
          isChecked = true;
        }
        await this.#read();
        log.info("the table is read", { pools: this.#pools.size });
        this.#pollIn(this.#spread(this.#pollMs()));
        return;
      } catch (error) {
        if (!(error instanceof TableError)) throw error;
        if (error.isDefinite) throw new ServiceError("startup", error.message);
        this.#lastError = error.message;
        log.warn("the table can't be read yet; trying again", { reason: error.message });
      }
      await this.#sleep(Math.max(RETRY_MS.least, retryMs * (0.8 + 0.2 * clock.random())));
      retryMs = Math.min(retryMs * 2, RETRY_MS.most);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#options.table.close();
  }

  unreadyReason(): string | undefined {
    if (this.#lastRead !== undefined) return undefined;
    return unread(this.#lastError);
  }

  /** Each renewal has to be written, and what that costs leaves parsing out of account. */
  renew(): boolean {
    return false;
  }

  async register(registration: Registration): Promise<void> {
    const { table, clock, heartbeatIntervalSecs, leaseSecs, region } = this.#options;
    const id = sortKey(registration.key);
    const known = this.#pools.get(id);
    const knownRenewal = known?.renewal;
    const json = JSON.stringify(registration);
    const isSame =
      known !== undefined &&
      (known.text === json || differences(registrationOf(known), registration).length === 0);
    let text = isSame ? known.text : json;
    const refusal = isSame
      ? undefined
      : this.#capacity.refusal(registration.key, known?.bytes, Buffer.byteLength(text));
    let kept = registration;
    if (refusal !== undefined) {
      if (known === undefined) throw this.#refused(refusal);
      // The change can't be kept, but the pool is alive.
      kept = registrationOf(known);
      text = known.text;
    }
    const renewal = { renewedAtMs: clock.wallMs(), leaseSecs, writtenIn: region };
    const deadlineMs = (heartbeatIntervalSecs * 1000) / 2;
    const lateAfterMs = clock.monotonicMs() + deadlineMs;
    // By both clocks: that of a virtual machine may have stood still while it did.
    const isLate = () =>
      clock.monotonicMs() > lateAfterMs || clock.wallMs() - renewal.renewedAtMs > deadlineMs;
    let result: "added" | "renewed" | "changed" = "renewed";
    const write = async (signal: AbortSignal) => {
      // Of an item that we have not read, the text stays at first: it may be the same registration
      // with its lists in the order that came first.
      const present = known === undefined ? "kept" : "replaced";
      const old = await table.write({ id, text, renewal, present, isLate }, signal);
      const found = decode(old);
      const wasLive = found.text !== undefined && this.#endsAtMs(found) >= this.#nowMs();
      if (!wasLive) result = "added";
      if (found.text === text) return found;
      const before = found.text === undefined ? undefined : parseText(id, found.text);
      const fields = before === undefined ? [] : differences(before, kept);
      if (wasLive && fields.length > 0) {
        result = "changed";
        this.#counts.disagreements += 1;
        this.#disagreements.note(registration.key, fields);
      }
      if (present === "replaced" || old.registration === undefined) return found;
      if (found.text !== undefined && before !== undefined && fields.length === 0) {
        text = found.text;
        return found;
      }
      const again = { id, text, renewal, present: "replaced", isLate } as const;
      const last = decode(await table.write(again, signal));
      // That the second took the place of the first says nothing.
      return isRenewal(renewal, last) ? found : last;
    };
    let replaced: Decoded;
    try {
      replaced = await this.#writes.count(() => this.#within(deadlineMs, write));
    } catch (error) {
      this.#counts.failed += 1;
      throw new ServiceError("unavailable", `the registration was not kept: ${messageOf(error)}`);
    }
    this.#events += 1;
    this.expire();
    const isMended = this.#undecodable.delete(id);
    const before = this.#pools.get(id);
    const wasInGrace = this.#isInGrace(before);
    const written: Record = {
      key: registration.key,
      text,
      parsed: text === json ? registration : undefined,
      renewal,
      replacedMs: replaced.renewedAtMs ?? null,
    };
    const hasOverlapped = before !== undefined && before.renewal !== knownRenewal;
    const record = hasOverlapped ? this.#joined(before, written, replaced) : written;
    const pool = this.#put(before, id, record);
    pool.writtenAt = this.#events;
    if (isMended || wasInGrace) this.#settleAll(this.#asOfMs);
    else this.#settle(pool, this.#asOfMs);
    if (refusal !== undefined) throw this.#refused(refusal);
    this.#counts[result] += 1;
  }

  #refused(refusal: ServiceError): ServiceError {
    this.#counts.refused += 1;
    return refusal;
  }

  expire(): void {
    const nowMs = this.#nowMs();
    // Time may go back: somebody sets the wall clock, or a pause is found to be left out.
    if (nowMs < this.#asOfMs || nowMs > this.#unchangedUntilMs) this.#settleAll(nowMs);
  }

  isComplete(): boolean {
    return this.incompleteReasons().next().done === true;
  }

  *incompleteReasons(): Generator<string> {
    this.expire();
    const { runClock, clock, leaseSecs } = this.#options;
    const fresh = freshReason(runClock, runClock.nowMs(), leaseSecs);
    if (fresh !== undefined) yield fresh;
    if (this.#lastRead === undefined) {
      yield unread(this.#lastError);
    } else {
      const readMsAgo = clock.monotonicMs() - this.#lastRead.beganAtMs;
      if (readMsAgo > STALE_POLLS * this.#pollMs()) yield stale(readMsAgo, this.#lastError);
    }
    if (this.#inGrace > 0) yield `pools are listed by the replication grace: ${this.#inGrace}`;
    if (this.#undecodableLive > 0) {
      yield `items of the table that may be of live pools can't be decoded: ${this.#undecodableLive}`;
    }
  }

  *poolIds(): Generator<string> {
    yield* this.#pools.keys();
    yield* this.#undecodable.keys();
  }

  registrationOf(id: string): RegistrationFacts | undefined {
    const pool = this.#pools.get(id);
    const disagreements = this.#disagreements.of(id);
    if (pool?.isListed) {
      const { renewedAtMs, leaseSecs, writtenIn } = pool.renewal;
      const nowMs = this.#nowMs();
      return {
        isLive: true,
        reasons: this.#odditiesOf(pool.renewal, nowMs),
        registeredMsAgo: Math.max(0, nowMs - renewedAtMs),
        leaseLeftMs: Math.max(0, renewedAtMs + leaseSecs * 1000 - nowMs),
        writtenIn,
        disagreements,
      };
    }
    if ((this.#undecodable.get(id) ?? Number.NEGATIVE_INFINITY) < this.#asOfMs) return undefined;
    return {
      isLive: false,
      reasons: ["its item in the table can't be decoded"],
      registeredMsAgo: null,
      leaseLeftMs: null,
      writtenIn: null,
      disagreements,
    };
  }

  /** What is odd about the times of a live pool, in words. */
  #odditiesOf(renewal: Renewal, nowMs: number): string[] {
    const { renewedAtMs, leaseSecs, writtenIn } = renewal;
    const aheadMs = renewedAtMs - nowMs;
    if (aheadMs > this.#options.skewSecs * 1000) {
      return [
        `registered ${wholeSecs(aheadMs)} s in the future: clocks differ by more than the skew`,
      ];
    }
    const endedMsAgo = -aheadMs - leaseSecs * 1000;
    if (endedMsAgo <= 0) return [];
    const why =
      this.#lapsesAtMs(renewal) < nowMs
        ? `by the replication grace, since region ${writtenIn} wrote it`
        : "within the skew that clocks may have";
    return [`lease ended ${wholeSecs(endedMsAgo)} s ago; listed ${why}`];
  }

  liveCount(): number {
    return this.#live;
  }

  get counts(): RegistrationCounts {
    return this.#counts;
  }

  table(): TableFacts {
    return {
      lastRead: this.#lastRead ?? null,
      undecodable: this.#undecodableLive,
      lastError: this.#lastError ?? null,
      reads: this.#reads,
      writes: this.#writes,
    };
  }

  /** The wall clock, less the time since the last read in which this process could not run. */
  #nowMs(): number {
    const { clock, runClock } = this.#options;
    const pausedMs = runClock.pausedMs() - this.#pausedBeforeReadMs;
    return clock.wallMs() - pausedMs;
  }

  /** The last moment at which a pool is live, as far as its writer knows. */
  #lapsesAtMs({ renewedAtMs, leaseSecs }: Maybe<Renewal>): number {
    if (renewedAtMs === undefined || leaseSecs === undefined) return Number.POSITIVE_INFINITY;
    return renewedAtMs + (leaseSecs + this.#options.skewSecs) * 1000;
  }

  /** The last moment at which a pool is listed: renewals from elsewhere may be on their way. */
  #endsAtMs(renewal: Maybe<Renewal>): number {
    const isOurs = renewal.writtenIn === this.#options.region;
    return this.#lapsesAtMs(renewal) + (isOurs ? 0 : this.#options.replicationGraceSecs * 1000);
  }

  /**
   * What a write of our own, which took the place of `replaced`, makes of what came to be known of its
   * pool while it was under way: of two writes of our own the registration that the table took last, and ours
   * rather than one that was read; and the longer lease, which was granted and must not end early.
   */
  #joined(known: Pool, written: Record, replaced: Decoded): Record {
    const last = isLater(known, written.renewal.renewedAtMs, replaced) ? known : written;
    const isLonger = this.#lapsesAtMs(known.renewal) > this.#lapsesAtMs(written.renewal);
    const { key, text, parsed, replacedMs } = last;
    // A copy, which tells other writes that are under way that something came meanwhile.
    const renewal = { ...(isLonger ? known : written).renewal };
    return { key, text, parsed, renewal, replacedMs };
  }

  #isInGrace(pool: Pool | undefined): boolean {
    return pool?.isListed === true && this.#lapsesAtMs(pool.renewal) < this.#asOfMs;
  }

  /** Looks at every pool anew, as of `nowMs`. */
  #settleAll(nowMs: number): void {
    this.#asOfMs = nowMs;
    this.#unchangedUntilMs = Number.POSITIVE_INFINITY;
    this.#inGrace = 0;
    this.#undecodableLive = 0;
    for (const pool of this.#pools.values()) this.#settle(pool, nowMs);
    for (const endsAtMs of this.#undecodable.values()) {
      if (endsAtMs < nowMs) continue;
      this.#undecodableLive += 1;
      this.#changesAfter(endsAtMs);
    }
  }

  /** Lists a pool or takes it off the list, and notes when that will change. */
  #settle(pool: Mutable<Pool>, nowMs: number): void {
    const endsAtMs = this.#endsAtMs(pool.renewal);
    if (endsAtMs < nowMs) {
      this.#unlist(pool);
      return;
    }
    this.#list(pool);
    const lapsesAtMs = this.#lapsesAtMs(pool.renewal);
    if (lapsesAtMs < nowMs) this.#inGrace += 1;
    this.#changesAfter(lapsesAtMs < nowMs ? endsAtMs : lapsesAtMs);
  }

  #changesAfter(ms: number): void {
    this.#unchangedUntilMs = Math.min(this.#unchangedUntilMs, ms);
  }

  #list(pool: Mutable<Pool>): void {
    if (pool.isListed) return;
    pool.isListed = true;
    this.#live += 1;
    // The first read may find thousands that others wrote.
    const level = this.#lastRead === undefined && pool.writtenAt === 0 ? "debug" : "info";
    this.#options.log[level]("pool added", { pool: poolName(pool.key) });
    this.#announce(pool);
  }

  #announce(pool: Mutable<Pool>): void {
    const registration = registrationOf(pool);
    pool.parsed = undefined;
    this.#options.livePools.put(pool.id, registration, registrationJson(registration, pool.text));
  }

  #unlist(pool: Mutable<Pool>): void {
    if (!pool.isListed) return;
    pool.isListed = false;
    this.#live -= 1;
    this.#counts.expired += 1;
    this.#options.livePools.remove(pool.id, this.#departureOf(pool));
    this.#options.log.info("pool expired", { pool: poolName(pool.key) });
  }

  /** How a pool leaves that is listed until now: it lapses, or else a read has not found it. */
  #departureOf({ id, renewal }: Pool): Departure {
    const nowMs = this.#nowMs();
    const { renewedAtMs, leaseSecs, writtenIn } = renewal;
    const registeredMsAgo = nowMs - renewedAtMs;
    const ending =
      this.#endsAtMs(renewal) < nowMs
        ? ({ what: "lease ended", endedMsAgo: registeredMsAgo - leaseSecs * 1000 } as const)
        : ({ what: "its item was taken out of the table", endedMsAgo: 0 } as const);
    return { ...ending, registeredMsAgo, writtenIn, disagreements: this.#disagreements.of(id) };
  }

  /** Puts in what is known of a pool now. Whether it is listed is for `#settle` to say. */
  #put(
    pool: Mutable<Pool> | undefined,
    id: string,
    { key, text, parsed, renewal, replacedMs }: Record,
  ): Mutable<Pool> {
    if (pool !== undefined) {
      pool.renewal = renewal;
      pool.replacedMs = replacedMs;
      if (pool.text === text) return pool;
    }
    const bytes = Buffer.byteLength(text);
    this.#capacity.hold(pool?.bytes, bytes);
    if (pool === undefined) {
      const added: Mutable<Pool> = {
        id,
        key,
        text,
        parsed,
        renewal,
        replacedMs,
        bytes,
        writtenAt: 0,
        foundAt: 0,
        isListed: false,
      };
      this.#pools.set(id, added);
      return added;
    }
    pool.text = text;
    pool.parsed = parsed;
    pool.bytes = bytes;
    if (pool.isListed) this.#announce(pool);
    return pool;
  }

  /** Reads the whole table and takes what it says for the truth. */
  #read(): Promise<void> {
    return this.#reads.count(() => this.#readAndMerge());
  }

  async #readAndMerge(): Promise<void> {
    const { clock, runClock } = this.#options;
    this.#events += 1;
    const beganAt = this.#events;
    const [beganAtMs, beganAtWallMs] = [clock.monotonicMs(), clock.wallMs()];
    const pausedMs = runClock.pausedMs();
    const snapshot = await this.#within(this.#readDeadlineMs(), (signal) => this.#collect(signal));
    // What was read before a pause would have every lease look as old as the pause is long.
    if (runClock.pausedMs() !== pausedMs) {
      throw new TableError("error", "the process was not running during the read");
    }
    this.#merge(snapshot, beganAt);
    this.#lastError = undefined;
    this.#pausedBeforeReadMs = pausedMs;
    this.#settleAll(this.#nowMs());
    const { items, pages } = snapshot;
    const tookMs = clock.monotonicMs() - beganAtMs;
    this.#lastRead = { beganAtMs, beganAtWallMs, tookMs, items, pages };
  }

  async #collect(signal: AbortSignal): Promise<Snapshot> {
    const { clock, skewSecs } = this.#options;
    const snapshot: Snapshot = {
      unchanged: [],
      pools: [],
      undecodable: new Map(),
      future: [],
      items: 0,
      pages: 0,
    };
    for await (const page of this.#options.table.pages(signal)) {
      snapshot.pages += 1;
      snapshot.items += page.length;
      const nowMs = this.#nowMs();
      const futureMs = clock.wallMs() + skewSecs * 1000;
      for (const item of page) this.#examine(item, snapshot, { nowMs, futureMs });
    }
    return snapshot;
  }

  /** Notes what an item says, as of `nowMs`; renewals later than `futureMs` are odd. */
  #examine(
    item: Decoded,
    snapshot: Snapshot,
    { nowMs, futureMs }: { readonly nowMs: number; readonly futureMs: number },
  ): void {
    const { id, text, renewedAtMs, leaseSecs, writtenIn } = item;
    // A key attribute is always there.
    if (id === undefined) return;
    const endsAtMs = this.#endsAtMs(item);
    // Whatever it says, it says it of a pool that is no more.
    if (endsAtMs < nowMs) return;
    if (
      text === undefined ||
      renewedAtMs === undefined ||
      leaseSecs === undefined ||
      writtenIn === undefined
    ) {
      snapshot.undecodable.set(id, endsAtMs);
      return;
    }
    const known = this.#pools.get(id);
    const isUnchanged = known?.text === text;
    if (isUnchanged && isRenewal(known.renewal, item)) {
      snapshot.unchanged.push(known);
      if (renewedAtMs > futureMs) snapshot.future.push(id);
      return;
    }
    const parsed = isUnchanged ? undefined : parseText(id, text);
    const key = isUnchanged ? known.key : parsed?.key;
    if (key === undefined) {
      snapshot.undecodable.set(id, endsAtMs);
      return;
    }
    snapshot.pools.push({
      id,
      known,
      // Of two equal strings the one that is kept: comparing it with itself costs nothing.
      text: isUnchanged ? known.text : text,
      key,
      parsed,
      renewal: { renewedAtMs, leaseSecs, writtenIn },
      replacedMs: undefined,
    });
    if (renewedAtMs > futureMs) snapshot.future.push(id);
  }

  #merge(snapshot: Snapshot, beganAt: number): void {
    for (const pool of snapshot.unchanged) pool.foundAt = beganAt;
    for (const found of snapshot.pools) {
      // We may have written it while the read was under way.
      const known = found.known ?? this.#pools.get(found.id);
      if (known !== undefined) {
        known.foundAt = beganAt;
        // The read may or may not have seen our own write, which was answered after it began.
        if (known.writtenAt > beganAt) continue;
      }
      this.#put(known, found.id, found).foundAt = beganAt;
    }
    for (const pool of this.#pools.values()) {
      if (pool.foundAt === beganAt || pool.writtenAt > beganAt) continue;
      this.#unlist(pool);
      this.#capacity.release(pool.bytes);
      this.#pools.delete(pool.id);
    }
    for (const id of snapshot.undecodable.keys()) {
      // Our own later write has mended it.
      if ((this.#pools.get(id)?.writtenAt ?? 0) > beganAt) snapshot.undecodable.delete(id);
    }
    this.#warnUndecodable(snapshot.undecodable);
    this.#undecodable = snapshot.undecodable;
    this.#warnFuture(snapshot.future);
  }

  #warnUndecodable(undecodable: ReadonlyMap<string, number>): void {
    for (const id of undecodable.keys()) {
      if (this.#undecodable.has(id)) continue;
      this.#options.log.warn("an item of the table can't be decoded and is left out", { sk: id });
    }
  }

  #warnFuture(future: readonly string[]): void {
    const [first] = future;
    if (first === undefined || !this.#futureCooldown.restart()) return;
    this.#options.log.warn(
      "pools were renewed in the future: clocks differ by more than the skew",
      {
        sk: first,
        count: future.length,
      },
    );
  }

  #pollIn(ms: number, throttledPolls = 1): void {
    if (this.#isClosed) return;
    this.#cancelTimer = this.#options.clock.after(Math.max(0, ms), () => {
      void this.#poll(throttledPolls);
    });
  }

  /** Reads the table, and sees to it that it is read again one poll interval after this began. */
  async #poll(throttledPolls: number): Promise<void> {
    const { clock, log } = this.#options;
    const beganAtMs = clock.monotonicMs();
    let polls = 1;
    try {
      const failed = this.#lastError;
      await this.#read();
      if (failed !== undefined) log.info("the table is read again");
    } catch (error) {
      const isThrottled = error instanceof TableError && error.fault === "throttled";
      if (isThrottled) polls = Math.min(throttledPolls * 2, THROTTLED_POLLS);
      this.#lastError = messageOf(error);
      if (this.#failureCooldown.restart()) {
        log.warn("the table can't be read; the last lists are served", { reason: this.#lastError });
      }
    }
    this.#pollIn(beganAtMs + this.#spread(polls * this.#pollMs()) - clock.monotonicMs(), polls);
  }

  #pollMs(): number {
    return this.#options.pollIntervalSecs * 1000;
  }

  /** Replicas that were started together must not all read at the same moment for ever. */
  #spread(ms: number): number {
    return ms * (0.9 + 0.2 * this.#options.clock.random());
  }

  #readDeadlineMs(): number {
    const { least, most } = READ_DEADLINE_MS;
    return Math.max(least, Math.min(most, this.#options.leaseSecs * 1000));
  }

  async #within<T>(ms: number, action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await withDeadline(this.#options.clock, ms, action);
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      throw new TableError("timeout", `DynamoDB gave ${error.message}`);
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#cancelTimer = this.#options.clock.after(ms, resolve);
    });
  }
}

function unread(error: string | undefined): string {
  return `the table has not been read yet${because(error)}`;
}

function stale(readMsAgo: number, error: string | undefined): string {
  const secs = wholeSecs(readMsAgo);
  return `the last successful read of the table began ${secs} s ago${because(error)}`;
}

function wholeSecs(ms: number): number {
  return Math.floor(ms / 1000);
}

function because(error: string | undefined): string {
  return error === undefined ? "" : `: ${error}`;
}

/** Whether an item tells of just this renewal. */
function isRenewal({ renewedAtMs, leaseSecs, writtenIn }: Renewal, item: Decoded): boolean {
  return (
    item.renewedAtMs === renewedAtMs && item.leaseSecs === leaseSecs && item.writtenIn === writtenIn
  );
}

/**
 * Whether the table took what came to be known of a pool while a write of ours was under way later than
 * that write, of `renewedAtMs`, which took the place of `replaced`. However their answers come, the later
 * of two writes was told of the other, unless a third came between: then clocks have to tell, until the
 * next read does. A read that ends before a write is answered has begun before that, and undoes nothing.
 */
function isLater(known: Pool, renewedAtMs: number, replaced: Decoded): boolean {
  if (known.replacedMs === undefined) return false;
  if (known.text === replaced.text && isRenewal(known.renewal, replaced)) return false;
  return known.replacedMs === renewedAtMs || known.renewal.renewedAtMs > renewedAtMs;
}

/** The registration of a pool. */
function registrationOf({ id, text, parsed }: Pool): Registration {
  const registration = parsed ?? parseText(id, text);
  if (registration === undefined) throw new Error(`what was kept of ${id} can't be parsed`);
  return registration;
}
