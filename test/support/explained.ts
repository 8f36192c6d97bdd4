import type { WireKey } from "./relay.ts";

/** A pool as `GET /explain` shows it. */
export interface ExplainedPool {
  readonly key: WireKey;
  readonly listed: boolean;
  readonly reasons: readonly string[];
  readonly last_registered_s_ago: number | null;
  readonly lease_left_s: number | null;
  readonly written_in: string | null;
  readonly relays_ready: number | null;
  readonly frontends_ready: number | null;
  readonly disagreements: { readonly count: number; readonly fields: readonly string[] };
}

/** What `GET /explain` shows. */
export interface Explained {
  readonly service: {
    readonly version: string;
    readonly mode: string;
    readonly store: string;
    readonly started_at: string;
    readonly uptime_s: number;
    readonly complete: boolean;
    readonly reasons: readonly string[];
  };
  readonly pools: readonly ExplainedPool[];
  readonly pools_left_out?: number;
  readonly slices: {
    readonly used: number;
    readonly left_out: Readonly<
      Record<string, { readonly count: number; readonly names: readonly string[] }>
    >;
  } | null;
  readonly table: {
    readonly last_read_s_ago: number | null;
    readonly last_read_took_ms: number | null;
    readonly items: number | null;
    readonly pages: number | null;
    readonly last_error: string | null;
  } | null;
}

/** What a service explains. */
export async function explained(url: string): Promise<Explained> {
  const response = await fetch(`${url}/explain`);
  if (response.status !== 200) throw new Error(`GET /explain answered ${response.status}`);
  // It is for the tests to find what is not as it should be.
  return (await response.json()) as Explained;
}

/** What is explained of the pool of this name. */
export function poolOf({ pools }: Explained, dgdName: string): ExplainedPool | undefined {
  return pools.find(({ key }) => key.dgd_name === dgdName);
}
