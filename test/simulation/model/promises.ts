import type { Settings } from "../plan.ts";

/** A heartbeat that was acknowledged. All times are true ones. */
export interface Acknowledged {
  readonly id: string;
  /** The process that acknowledged it, and the region where others may know of it. */
  readonly process: object;
  readonly region: string | undefined;
  readonly receivedAtMs: number;
  readonly acknowledgedAtMs: number;
  /** How far the wall clock was ahead when the heartbeat was received. */
  readonly wallErrorMs: number;
  /** The commit of the table that kept it. */
  readonly commit: number;
}

/** A replica that is looked at, and what has to be known of it. */
export interface Glance {
  readonly process: object;
  readonly region: string | undefined;
  readonly nowMs: number;
  readonly wallMs: number;
  readonly wallErrorMs: number;
  readonly lastReadBeganAtMs: number | undefined;
  readonly setBackAt: (id: string) => number;
  /** How much longer than they were granted its leases may last. */
  readonly pausedMs: number;
}

/** Clocks drift by this much at most over any lease, and by this part of a pause, which may be longer. */
const DRIFT_MS = 10;
const DRIFT = 0.0002;

/**
 * The two promises of the reference's first section, from outside: by who was answered what and when,
 * in true time, and knowing nothing of how leases are kept. Where clocks differ by more than the
 * declared skew, or the table was set back by a write that was late, nothing was promised.
 */
export class Promises {
  readonly #settings: Settings;
  readonly #acknowledged = new Map<string, Acknowledged[]>();
  /** When each pool was last tried to be renewed, by who may know of it: by whatever clock they use. */
  readonly #tried = new WeakMap<object, Map<string, number>>();
  readonly #everywhere = {};

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** A heartbeat reached a process, whatever became of it. */
  tried(id: string, { process, region, nowMs, wallMs }: Glance): void {
    const known = this.#triedOf(process, region);
    known.set(id, Math.max(known.get(id) ?? 0, region === undefined ? nowMs : wallMs));
  }

  acknowledged(renewal: Acknowledged): void {
    const oldestMs = renewal.acknowledgedAtMs - 2 * this.#leaseMs;
    const kept = (this.#acknowledged.get(renewal.id) ?? []).filter(
      ({ acknowledgedAtMs }) => acknowledgedAtMs > oldestMs,
    );
    this.#acknowledged.set(renewal.id, [...kept, renewal]);
  }

  /** The pools that must be live to a replica. */
  mustBeLive(glance: Glance): string[] {
    return [...this.#acknowledged].flatMap(([id, renewals]) =>
      renewals.some((renewal) => this.#holds(renewal, glance)) ? [id] : [],
    );
  }

  /** Whether a pool may still be live to a replica. */
  mayBeLive(id: string, { process, region, nowMs, wallMs, pausedMs }: Glance): boolean {
    const { leaseSecs, skewSecs, graceSecs } = this.#settings;
    const triedAtMs = this.#triedOf(process, region).get(id);
    if (triedAtMs === undefined) return false;
    if (region === undefined) {
      return nowMs <= triedAtMs + this.#leaseMs + pausedMs * (1 + DRIFT) + DRIFT_MS;
    }
    return wallMs <= triedAtMs + (leaseSecs + skewSecs + graceSecs) * 1000 + pausedMs;
  }

  #holds(renewal: Acknowledged, glance: Glance): boolean {
    if (glance.nowMs > renewal.receivedAtMs + this.#leaseMs - DRIFT_MS) return false;
    if (glance.region === undefined) return renewal.process === glance.process;
    if (renewal.process !== glance.process) {
      const { lastReadBeganAtMs = Number.NEGATIVE_INFINITY } = glance;
      if (glance.region !== renewal.region) return false;
      if (renewal.acknowledgedAtMs >= lastReadBeganAtMs) return false;
    }
    if (glance.setBackAt(renewal.id) > renewal.commit) return false;
    const aheadMs = glance.wallErrorMs - renewal.wallErrorMs;
    return aheadMs <= this.#settings.skewSecs * 1000 - DRIFT_MS;
  }

  /** In one table, anyone may know; without one, only the process itself. */
  #triedOf(process: object, region: string | undefined): Map<string, number> {
    const whose = region === undefined ? process : this.#everywhere;
    const known = this.#tried.get(whose) ?? new Map<string, number>();
    this.#tried.set(whose, known);
    return known;
  }

  get #leaseMs(): number {
    return this.#settings.leaseSecs * 1000;
  }
}
