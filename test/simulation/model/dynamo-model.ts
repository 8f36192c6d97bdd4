import type { Registration } from "../../../src/pools/pool.ts";
import { type Decoded, decode, type Item } from "../../../src/registrations/dynamodb/item.ts";
import type { Machine } from "../machine.ts";
import type { Settings } from "../plan.ts";
import type { Random } from "../random.ts";
import type { Done, ReadListener, TableListener } from "../table-client.ts";
import { parse } from "./parsed-texts.ts";
import { RunningTime } from "./running-time.ts";
import { membersOf, type Registering, type StoreModel } from "./store-model.ts";

/** What is known of a pool: of the last read, or of a later write of this replica's own. */
interface Known {
  readonly json: string;
  readonly renewedAtMs: number;
  readonly leaseSecs: number;
  readonly writtenIn: string;
  /** The number of the event at which a write of this replica's own was answered; 0 for a read. */
  readonly answeredAt: number;
  /** When what that write replaced had been renewed. */
  readonly replacedMs?: number | undefined;
}

/** What the writes of one heartbeat came to. */
interface Writes {
  text: string;
  commit: number;
  /** What the last of them replaced that was not of this heartbeat. */
  replaced: Decoded | undefined;
  /** When the heartbeat came. */
  readonly beganAtMs: number;
  readonly renewedAtMs: number;
  /** What the pool was known by when the heartbeat came. */
  readonly known: Registration | undefined;
}

interface Read {
  readonly signal: AbortSignal;
  isOver: boolean;
  readonly beganAtTrueMs: number;
  wallErrorMs: number;
  readonly beganAt: number;
  readonly beganAtMs: number;
  readonly pausedMs: number;
  readonly pools: Map<string, Known>;
  readonly undecodable: Map<string, number>;
}

/** A list is no longer complete when the last read began so many polls ago. */
const STALE_POLLS = 3;

export interface DynamoModelOptions {
  readonly settings: Settings;
  readonly region: string;
  readonly machine: Machine;
  readonly nowMs: () => number;
  /** Hears of what should never be read or written. */
  readonly report: (invariant: "content" | "deadlines", message: string) => void;
}

/** Section "The DynamoDB store" of the reference, of one replica. */
export class DynamoModel implements StoreModel, TableListener {
  readonly #options: DynamoModelOptions;
  readonly #running: RunningTime;
  #pools = new Map<string, Known>();
  /** Items that can't be decoded, and until when each may stand for a live pool. */
  #undecodable = new Map<string, number>();
  #events = 0;
  #reading: Read | undefined;
  #lastRead: Read | undefined;
  #registering: Writes | undefined;
  readonly #writes = new WeakMap<AbortSignal, Writes>();
  /** The commit of the write that was acknowledged last. */
  lastCommit = 0;

  constructor(options: DynamoModelOptions) {
    this.#options = options;
    this.#running = new RunningTime(options.machine);
  }

  /** When the last successful read began, in true time. */
  get lastReadBeganAtMs(): number | undefined {
    return this.#lastRead?.beganAtTrueMs;
  }

  /** How far the wall clock was ahead when the last successful read was made. */
  get readWallErrorMs(): number {
    return this.#lastRead?.wallErrorMs ?? 0;
  }

  beat(): void {
    this.#running.beat();
  }

  isReady(): boolean {
    return this.#lastRead !== undefined;
  }

  isComplete(): boolean {
    const { settings, machine } = this.#options;
    const nowMs = this.#nowMs();
    const readAtMs = this.#lastRead?.beganAtMs ?? Number.NEGATIVE_INFINITY;
    return (
      this.#running.hasRunFor(settings.leaseSecs * 1000) &&
      machine.monotonicMs() - readAtMs <= STALE_POLLS * settings.pollSecs * 1000 &&
      ![...this.#pools.values()].some(
        (pool) => this.#lapsesAtMs(pool) < nowMs && nowMs <= this.#endsAtMs(pool),
      ) &&
      ![...this.#undecodable.values()].some((endsAtMs) => endsAtMs >= nowMs)
    );
  }

  live(): Map<string, string> {
    const nowMs = this.#nowMs();
    const live = new Map<string, string>();
    for (const [id, pool] of this.#pools) {
      if (this.#endsAtMs(pool) >= nowMs) live.set(id, pool.json);
    }
    return live;
  }

  register(id: string, registration: Registration): Registering {
    const { machine, settings, region } = this.#options;
    const renewedAtMs = machine.wallMs();
    const before = this.#pools.get(id);
    const known = before && parse(id, before.json);
    const beganAtMs = machine.monotonicMs();
    const writes: Writes = {
      text: "",
      commit: 0,
      replaced: undefined,
      beganAtMs,
      renewedAtMs,
      known,
    };
    this.#registering = writes;
    return {
      acknowledged: () => {
        this.#events += 1;
        const written = parse(id, writes.text);
        if (written === undefined || membersOf(written) !== membersOf(registration)) {
          this.#options.report("content", `${id} was acknowledged, but written as ${writes.text}`);
          return;
        }
        this.lastCommit = writes.commit;
        this.#undecodable.delete(id);
        const answeredAt = this.#events;
        const ours: Known = {
          json: JSON.stringify(written),
          renewedAtMs,
          leaseSecs: settings.leaseSecs,
          writtenIn: region,
          answeredAt,
          replacedMs: writes.replaced?.renewedAtMs,
        };
        const other = this.#pools.get(id);
        if (other === undefined || other === before) {
          this.#pools.set(id, ours);
          return;
        }
        const last = isLater(id, other, writes) ? other : ours;
        const longer = this.#lapsesAtMs(other) > this.#lapsesAtMs(ours) ? other : ours;
        const { json, replacedMs } = last;
        this.#pools.set(id, { ...longer, json, replacedMs, answeredAt });
      },
    };
  }

  pausedMs(): number {
    return this.#options.machine.wallMs() - this.#nowMs();
  }

  lastMoment(random: Random): number {
    const { machine, settings } = this.#options;
    const pool = random.pick([undefined, undefined, ...this.#pools.values()]);
    if (pool !== undefined) {
      const ms = random.pick([this.#lapsesAtMs(pool), this.#endsAtMs(pool)]);
      return machine.whenWall(ms + this.pausedMs());
    }
    if (this.#lastRead === undefined || random.chance(0.5)) {
      return machine.whenElapsed(this.#running.leftOf(settings.leaseSecs * 1000));
    }
    const ageMs = machine.monotonicMs() - this.#lastRead.beganAtMs;
    return machine.whenElapsed(STALE_POLLS * settings.pollSecs * 1000 - ageMs);
  }

  readBegan(signal: AbortSignal): ReadListener {
    if (this.#reading?.isOver === false && !this.#reading.signal.aborted) {
      this.#options.report("deadlines", "two reads of the table are under way at once");
    }
    this.#running.look();
    this.#events += 1;
    const read: Read = {
      signal,
      isOver: false,
      beganAt: this.#events,
      beganAtMs: this.#options.machine.monotonicMs(),
      beganAtTrueMs: this.#options.nowMs(),
      wallErrorMs: this.#options.machine.wallErrorMs(),
      pausedMs: this.#running.pausedMs,
      pools: new Map(),
      undecodable: new Map(),
    };
    this.#reading = read;
    return {
      pageCame: (items) => this.#take(read, items),
      ended: () => this.#merge(read),
      over: () => {
        read.isOver = true;
      },
    };
  }

  #take(read: Read, items: readonly Item[]): void {
    read.wallErrorMs = Math.max(read.wallErrorMs, this.#options.machine.wallErrorMs());
    for (const item of items) {
      const { id = "", text = "", renewedAtMs, leaseSecs, writtenIn } = decode(item);
      const endsAtMs =
        renewedAtMs === undefined || leaseSecs === undefined
          ? Number.POSITIVE_INFINITY
          : this.#endsAtMs({ renewedAtMs, leaseSecs, writtenIn: writtenIn ?? "" });
      // What had lapsed by then is no pool, even if somebody then sets the clock back.
      if (endsAtMs < this.#nowMs()) continue;
      const registration = parse(id, text);
      if (
        registration === undefined ||
        renewedAtMs === undefined ||
        leaseSecs === undefined ||
        writtenIn === undefined
      ) {
        read.undecodable.set(id, endsAtMs);
      } else {
        const json = JSON.stringify(registration);
        read.pools.set(id, { json, renewedAtMs, leaseSecs, writtenIn, answeredAt: 0 });
      }
    }
  }

  #merge(read: Read): void {
    this.#running.look();
    const { machine, settings } = this.#options;
    const deadlineMs = Math.max(1000, Math.min(10_000, settings.leaseSecs * 1000));
    if (read.signal.aborted || machine.monotonicMs() - read.beganAtMs > deadlineMs) return;
    if (this.#running.pausedMs !== read.pausedMs) return;
    for (const [id, pool] of this.#pools) {
      const found = read.pools.get(id);
      const isOurs = pool.answeredAt >= read.beganAt;
      if (isOurs) read.undecodable.delete(id);
      // Where it says nothing new, it is still what the last write replaced another with.
      if (isOurs || (found !== undefined && isSame(pool, found))) read.pools.set(id, pool);
    }
    this.#pools = read.pools;
    this.#undecodable = read.undecodable;
    this.#lastRead = read;
  }

  writeBegan(signal: AbortSignal): void {
    if (this.#registering === undefined) return;
    this.#writes.set(signal, this.#registering);
    this.#registering = undefined;
  }

  writeSent(signal: AbortSignal): void {
    const writes = this.#writes.get(signal);
    const { machine, settings, report } = this.#options;
    const tookMs = machine.monotonicMs() - (writes?.beganAtMs ?? 0);
    if (writes === undefined || tookMs <= settings.heartbeatSecs * 500) return;
    report("deadlines", `a renewal was sent ${tookMs} ms after its heartbeat came`);
  }

  writeDone({ id, old: item, text, commit }: Done, signal: AbortSignal): void {
    const writes = this.#writes.get(signal);
    if (writes === undefined) return;
    const isFirst = writes.commit === 0;
    writes.text = text;
    writes.commit = commit;
    const replaced = decode(item);
    if (isFirst || replaced.renewedAtMs !== writes.renewedAtMs) writes.replaced = replaced;
    const oldText = replaced.text;
    // The order of lists that came first stays: the one that was read, or else the item's. Where a
    // change was read by some replicas only, each may write its own.
    const { known } = writes;
    const [old, written] = [parse(id, oldText ?? ""), parse(id, text)];
    if (old === undefined || written === undefined || text === oldText) return;
    if (membersOf(old) !== membersOf(written)) return;
    if (known !== undefined && membersOf(known) !== membersOf(written)) return;
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(written)) return;
    if (!isFirst) return;
    this.#options.report("content", `${id} was written in another order: ${text}, not ${oldText}`);
  }

  /** The wall clock, less the pauses since the last successful read began. */
  #nowMs(): number {
    this.#running.look();
    const pausedMs = this.#running.pausedMs - (this.#lastRead?.pausedMs ?? 0);
    return this.#options.machine.wallMs() - pausedMs;
  }

  #lapsesAtMs({ renewedAtMs, leaseSecs }: Pick<Known, "renewedAtMs" | "leaseSecs">): number {
    return renewedAtMs + (leaseSecs + this.#options.settings.skewSecs) * 1000;
  }

  #endsAtMs(pool: Pick<Known, "renewedAtMs" | "leaseSecs" | "writtenIn">): number {
    const { settings, region } = this.#options;
    const graceMs = pool.writtenIn === region ? 0 : settings.graceSecs * 1000;
    return this.#lapsesAtMs(pool) + graceMs;
  }
}

/** What somebody else may write just so. */
function isSame(a: Known, b: Known): boolean {
  return (
    a.json === b.json &&
    a.renewedAtMs === b.renewedAtMs &&
    a.leaseSecs === b.leaseSecs &&
    a.writtenIn === b.writtenIn
  );
}

/**
 * Whether what is known stands, rather than a write that was under way when it came. The table knows
 * the order, but a replica learns it only where one of the two replaced the other.
 */
function isLater(id: string, known: Known, { replaced, renewedAtMs }: Writes): boolean {
  // A read that ends before a write is answered has begun before that.
  if (known.answeredAt === 0) return false;
  const text = JSON.stringify(parse(id, replaced?.text ?? ""));
  const wasTold = replaced?.renewedAtMs === known.renewedAtMs && text === known.json;
  if (wasTold) return false;
  return known.replacedMs === renewedAtMs || known.renewedAtMs > renewedAtMs;
}
