import type { PoolKey } from "../../../pools/pool.ts";

/** The body of `GET /explain`. Seconds have a fraction; null is unknown. */
export interface Explanation {
  readonly service: ServiceState;
  readonly pools: readonly PoolState[];
  /** How many known pools are not among them, for the explanation would be too large. */
  readonly pools_left_out?: number;
  /** Null in registrations mode. */
  readonly slices: SlicesState | null;
  /** Null with the memory store. */
  readonly table: TableState | null;
}

export interface ServiceState {
  readonly version: string;
  readonly mode: string;
  readonly store: string;
  /** RFC 3339. */
  readonly started_at: string;
  readonly uptime_s: number;
  readonly complete: boolean;
  /** Why it is not complete. */
  readonly reasons: readonly string[];
}

export interface PoolState {
  readonly key: PoolKey;
  readonly listed: boolean;
  /** Why it is not listed; where it is, what is odd about it. */
  readonly reasons: readonly string[];
  readonly last_registered_s_ago: number | null;
  readonly lease_left_s: number | null;
  readonly written_in: string | null;
  readonly relays_ready: number | null;
  readonly frontends_ready: number | null;
  readonly disagreements: { readonly count: number; readonly fields: readonly string[] } | null;
}

export interface SlicesState {
  readonly used: number;
  readonly left_out: Readonly<
    Record<string, { readonly count: number; readonly names: readonly string[] }>
  >;
}

export interface TableState {
  readonly last_read_s_ago: number | null;
  readonly last_read_took_ms: number | null;
  readonly items: number | null;
  readonly pages: number | null;
  readonly last_error: string | null;
}
