import { decode, encode, type Item } from "../../src/registrations/dynamodb/item.ts";
import type { Write } from "../../src/registrations/dynamodb/table.ts";
import { EPOCH_MS } from "./machine.ts";
import { faultsOf, type ItemTrouble, isActive, type Plan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";

interface Version {
  /** Undefined where the item was deleted. */
  readonly item: Item | undefined;
  /** Whether somebody did to it what nobody should. */
  readonly isSpoilt: boolean;
  /** Decides which of two versions wins: the last writer's moment, and its region where these tie. */
  readonly writtenAtMs: number;
  readonly writtenIn: string;
}

/**
 * A DynamoDB Global Table: each region has all items, takes writes of its own, and sends them to the
 * others later. Where two regions wrote one item, the last writer wins everywhere.
 */
export class GlobalTable {
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #regions = new Map<string, Map<string, Version>>();
  #commits = 0;
  /** By region and item, the number of the last commit that took something back. */
  readonly #setBack = new Map<string, number>();

  constructor(plan: Plan, scheduler: Scheduler, random: Random) {
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#random = random;
    for (const { region } of plan.replicas) this.#regions.set(region, new Map());
  }

  /** What an item is in a region now. */
  get(region: string, id: string): Item | undefined {
    return this.#items(region).get(id)?.item;
  }

  /** Up to `limit` items that come behind `afterId`, in the order of their keys. */
  page(region: string, afterId: string | undefined, limit: number): Item[] {
    return this.ids(region)
      .filter((id) => afterId === undefined || id > afterId)
      .slice(0, limit)
      .map((id) => ({ pk: { S: "pool" }, sk: { S: id }, ...this.get(region, id) }));
  }

  ids(region: string): string[] {
    return [...this.#items(region)].flatMap(([id, { item }]) => (item ? [id] : [])).sort();
  }

  /** Does what an `UpdateItem` does, at this moment. */
  update(region: string, { id, text, renewal, present }: Write): { old: Item; commit: number } {
    const old = this.get(region, id);
    const kept = present === "kept" ? old?.registration : undefined;
    this.#commit(region, id, { ...encode(text, renewal), ...(kept && { registration: kept }) });
    return { old: old ?? {}, commit: this.#commits };
  }

  /** Does to an item what nobody should. */
  spoil(region: string, id: string, how: ItemTrouble): void {
    const item = this.#regions.get(region)?.get(id)?.item;
    if (item === undefined) return;
    this.#commit(region, id, spoilt(item, how), true);
  }

  /** Deletes what would not go by itself: items that can't be decoded, or were renewed in the future. */
  tidy(): void {
    const mostMs = EPOCH_MS + this.#scheduler.nowMs + 5000;
    for (const [region, items] of this.#regions) {
      for (const [id, { item, isSpoilt }] of items) {
        if (item === undefined) continue;
        if (isSpoilt || renewedAtMs(item) > mostMs) this.#commit(region, id, undefined);
      }
    }
  }

  /**
   * The number of the last commit in a region that made an item older than it was, or took it away:
   * what was promised of the item before is void. It takes a write that was late, or clocks that differ.
   */
  setBackAt(region: string, id: string): number {
    return this.#setBack.get(`${region} ${id}`) ?? 0;
  }

  #commit(region: string, id: string, item: Item | undefined, isSpoilt = false): void {
    const writtenAtMs = this.#scheduler.nowMs;
    const version = { item, isSpoilt, writtenAtMs, writtenIn: region };
    this.#put(region, id, version);
    for (const other of this.#regions.keys()) {
      if (other !== region) this.#replicate(other, id, version, this.#lagMs());
    }
  }

  #replicate(region: string, id: string, version: Version, afterMs: number): void {
    this.#scheduler.in(afterMs, () => {
      const { nowMs } = this.#scheduler;
      const partition = faultsOf(this.#plan, "partition").find((fault) => isActive(fault, nowMs));
      if (partition !== undefined) {
        this.#replicate(region, id, version, partition.atMs + partition.forMs - nowMs);
        return;
      }
      const known = this.#items(region).get(id);
      if (known === undefined || isLater(version, known)) this.#put(region, id, version);
    });
  }

  /** Up to a second, unless the plan says more; never beyond the end of the faults by more than that. */
  #lagMs(): number {
    const { nowMs } = this.#scheduler;
    const lags = faultsOf(this.#plan, "lag").filter((fault) => isActive(fault, nowMs));
    const mostMs = Math.max(1000, ...lags.map(({ lagMs }) => lagMs));
    const leftMs = Math.max(1000, this.#plan.faultsForMs - nowMs);
    return Math.min(leftMs, this.#random.int(50, mostMs));
  }

  #put(region: string, id: string, version: Version): void {
    this.#commits += 1;
    const items = this.#items(region);
    if (version.isSpoilt || renewedAtMs(version.item) < renewedAtMs(items.get(id)?.item)) {
      this.#setBack.set(`${region} ${id}`, this.#commits);
    }
    items.set(id, version);
  }

  #items(region: string): Map<string, Version> {
    const items = this.#regions.get(region);
    if (items === undefined) throw new Error(`there is no region ${region}`);
    return items;
  }
}

function isLater(a: Version, b: Version): boolean {
  if (a.writtenAtMs !== b.writtenAtMs) return a.writtenAtMs > b.writtenAtMs;
  return a.writtenIn > b.writtenIn;
}

function renewedAtMs(item: Item | undefined): number {
  return decode(item ?? {}).renewedAtMs ?? Number.NEGATIVE_INFINITY;
}

function spoilt(item: Item, how: ItemTrouble): Item | undefined {
  switch (how) {
    case "deleted":
      return undefined;
    case "no JSON":
      return { ...item, registration: { S: "pool" } };
    case "another key":
      return {
        ...item,
        registration: { S: (item.registration?.S ?? "").replace("dgd_name", "dgd") },
      };
    case "no lease": {
      const { lease_s: _, ...rest } = item;
      return rest;
    }
    case "no region": {
      const { written_in: _, ...rest } = item;
      return rest;
    }
  }
}
