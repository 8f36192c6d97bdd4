import type { Cluster, Imported } from "./cluster.ts";
import type { Pool } from "./pools.ts";
import type { Replica } from "./replica.ts";

/** What lists are to be held against. */
export interface Truth {
  /** The pools that there may be. */
  readonly pools: readonly Pool[];
  /** Where they are joined with slices, what those are. */
  readonly cluster: { importedOf(pool: Pool): Imported } | undefined;
  readonly hasTable: boolean;
}

/** Replicas of one configuration, and the pools that they are to know. */
export interface Group extends Truth {
  readonly name: string;
  readonly replicas: readonly Replica[];
  readonly cluster: Cluster | undefined;
}
