import { sortKey } from "../../src/pools/pool.ts";
import type { ApiServer } from "./api-server.ts";
import type { GlobalTable } from "./global-table.ts";
import { type Fault, faultsOf, isActive, type Plan, type PoolPlan } from "./plan.ts";
import type { Replica } from "./replica.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SliceFarm } from "./slice-farm.ts";

export interface FaultDriverOptions {
  readonly plan: Plan;
  readonly scheduler: Scheduler;
  readonly replicas: readonly Replica[];
  readonly table: GlobalTable;
  readonly server: ApiServer;
  /** Undefined where slices are of no interest. */
  readonly farm: SliceFarm | undefined;
}

/**
 * Does what a fault does at its beginning and at its end. The other kinds are looked up in the plan by
 * whoever they befall.
 */
export class FaultDriver {
  readonly #options: FaultDriverOptions;

  constructor(options: FaultDriverOptions) {
    this.#options = options;
  }

  begin(fault: Fault): void {
    const { plan, scheduler, replicas, table, server, farm } = this.#options;
    const named = (name: string) => replicas.find((replica) => replica.plan.name === name);
    const pool = (name: string) => plan.pools.find((other) => other.name === name);
    const later = (action: () => void) => scheduler.in(fault.forMs, action);
    switch (fault.kind) {
      case "pause": {
        const replica = named(fault.replica);
        replica?.pause();
        later(() => {
          if (!this.#isActive("pause", fault.replica)) replica?.resume(fault.order);
        });
        return;
      }
      case "restart": {
        const replica = named(fault.replica);
        replica?.stop();
        later(() => {
          if (!this.#isActive("restart", fault.replica)) replica?.start();
        });
        return;
      }
      case "wall":
        named(fault.replica)?.jumpWall(fault.byMs);
        later(() => named(fault.replica)?.jumpWall(-fault.byMs));
        return;
      case "item": {
        const spoilt = pool(fault.pool);
        if (spoilt !== undefined) table.spoil(fault.region, idOf(spoilt), fault.how);
        return;
      }
      case "cut":
        named(fault.replica)?.process?.slices?.cut(fault.how);
        return;
      case "compact":
        server.compact();
        return;
      case "slices": {
        const changed = pool(fault.pool);
        if (changed !== undefined) farm?.change(changed, fault.how);
      }
    }
  }

  #isActive(kind: "pause" | "restart", replica: string): boolean {
    const { plan, scheduler } = this.#options;
    return faultsOf(plan, kind).some(
      (fault) => fault.replica === replica && isActive(fault, scheduler.nowMs),
    );
  }
}

function idOf({ cluster, namespace, name }: PoolPlan): string {
  return sortKey({ cluster_id: cluster, namespace, dgd_name: name });
}
