import type { Cluster } from "./cluster.ts";
import type { Pool } from "./pools.ts";
import type { Replica } from "./replica.ts";

/** Replicas of one configuration, and the pools that they are to know. */
export interface Group {
  readonly name: string;
  readonly replicas: readonly Replica[];
  readonly pools: readonly Pool[];
  /** Where they are joined with slices. */
  readonly cluster: Cluster | undefined;
  readonly hasTable: boolean;
}
