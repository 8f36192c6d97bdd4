import { type PoolKey, poolName, sortKey } from "../pools/pool.ts";
import type { Clock } from "../runtime/clock.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";

/** How often, and how, relays of one pool have registered it differently so far. */
export interface DisagreementFacts {
  readonly count: number;
  readonly fields: readonly string[];
  /** Null where they never did. */
  readonly lastMsAgo: number | null;
}

interface Record {
  warnedAtMs: number;
  /** Since the last warning. */
  count: number;
  readonly fields: Set<string>;
  total: number;
  readonly allFields: Set<string>;
  lastAtMs: number;
}

const NONE: DisagreementFacts = { count: 0, fields: [], lastMsAgo: null };

/**
 * Warns when relays of one pool register it differently, at most once a minute a pool. Two relays
 * that disagree do so with every heartbeat.
 */
export class Disagreements {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #records = new Map<string, Record>();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Notes that a registration differed from the live one in `fields`. */
  note(key: PoolKey, fields: readonly string[]): void {
    const nowMs = this.#clock.monotonicMs();
    const id = sortKey(key);
    let record = this.#records.get(id);
    if (record === undefined) {
      this.#forget(nowMs);
      record = {
        warnedAtMs: Number.NEGATIVE_INFINITY,
        count: 0,
        fields: new Set(),
        total: 0,
        allFields: new Set(),
        lastAtMs: nowMs,
      };
      this.#records.set(id, record);
    }
    record.count += 1;
    record.total += 1;
    record.lastAtMs = nowMs;
    for (const field of fields) {
      record.fields.add(field);
      record.allFields.add(field);
    }
    if (nowMs - record.warnedAtMs < limits.warningEveryMs) return;
    this.#log.warn("a registration replaced one that differs", {
      pool: poolName(key),
      fields: [...record.fields].join(","),
      count: record.count,
    });
    record.warnedAtMs = nowMs;
    record.count = 0;
    record.fields.clear();
  }

  /** What was noted of a pool, by its sort key. */
  of(id: string): DisagreementFacts {
    const record = this.#records.get(id);
    if (record === undefined) return NONE;
    const { total, allFields, lastAtMs } = record;
    const lastMsAgo = this.#clock.monotonicMs() - lastAtMs;
    return { count: total, fields: [...allFields], lastMsAgo };
  }

  /** Drops what no longer limits anything once there is a lot of it. */
  #forget(nowMs: number): void {
    if (this.#records.size < limits.livePools) return;
    for (const [id, record] of this.#records) {
      if (nowMs - record.warnedAtMs >= limits.warningEveryMs) this.#records.delete(id);
    }
  }
}
