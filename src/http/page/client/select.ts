import { type PoolKey, poolName, sortKey } from "../../../pools/pool.ts";
import type { PoolState } from "./explanation.ts";

/** Most rows that are shown: a browser lays out some hundred at once without a pause. */
export const MAX_ROWS = 200;

export interface Filter {
  /** Words that each are somewhere in the key, in upper or lower case. */
  readonly words: string;
  readonly onlyUnlisted: boolean;
}

export interface Selection {
  /** What is shown: not listed first, then what is odd, then the rest, each in the given order. */
  readonly rows: readonly PoolState[];
  /** How many the filter lets through. */
  readonly matching: number;
}

export function select(pools: readonly PoolState[], filter: Filter): Selection {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  const ranks: [unlisted: PoolState[], odd: PoolState[], fine: PoolState[]] = [[], [], []];
  for (const pool of pools) {
    if (filter.onlyUnlisted && pool.listed) continue;
    if (words.length > 0) {
      const name = poolName(pool.key).toLowerCase();
      if (!words.every((word) => name.includes(word))) continue;
    }
    ranks[rank(pool)].push(pool);
  }
  const all = ranks.flat();
  return { rows: all.slice(0, MAX_ROWS), matching: all.length };
}

function rank(pool: PoolState): 0 | 1 | 2 {
  if (!pool.listed) return 0;
  return isOdd(pool) ? 1 : 2;
}

/** Whether a listed pool has something that somebody should look at. */
export function isOdd({ reasons, disagreements }: PoolState): boolean {
  return reasons.length > 0 || (disagreements?.count ?? 0) > 0;
}

/** One string for each pool. */
export function idOf({ key }: { readonly key: PoolKey }): string {
  return sortKey(key);
}
