import { brief, find, type ListedPool, type PoolList } from "../support/relay.ts";
import type { Findings } from "./findings.ts";
import type { Truth } from "./group.ts";
import type { Pool } from "./pools.ts";
import type { ReplicaFacts } from "./replica.ts";
import { LEASE_MS, POLL_MS, SECS, SLICES_STALE_MS, STALE_MS, UNNOTICED_MS } from "./times.ts";

/** How far the wall clock and a monotonic one may part in a lease. */
const CLOCKS_MS = 20;

/** A list as a router got it. Times are wall-clock time. */
export interface Reading {
  readonly replica: ReplicaFacts;
  /** Which of the replica's processes it is of, where that is sure. */
  readonly process: number | undefined;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  readonly list: PoolList;
}

/** Checks one list against what is known of each pool. */
export function judge(reading: Reading, truth: Truth, findings: Findings): void {
  const { replica, list } = reading;
  findings.count(list.complete ? "lists that are complete" : "lists that are not complete");
  const { sentAtMs, answeredAtMs, process } = reading;
  if (process !== undefined && list.complete) {
    const { startedAtMs, wokeAtMs } = replica;
    const leaseMs = LEASE_MS - CLOCKS_MS;
    findings.check(answeredAtMs >= startedAtMs + leaseMs, () => {
      return `${replica.name} is complete ${answeredAtMs - startedAtMs} ms after its start`;
    });
    const isAwake = sentAtMs < wokeAtMs || answeredAtMs >= wokeAtMs + leaseMs;
    findings.check(isAwake, () => {
      return `${replica.name} is complete ${answeredAtMs - wokeAtMs} ms after a pause`;
    });
  }
  const known = new Map(truth.pools.map((pool) => [pool.name, pool]));
  const tell = (what: string, pool: string) =>
    `${replica.name} ${what} ${pool}; complete: ${list.complete}, sent ${time(reading.sentAtMs)}, ` +
    `answered ${time(reading.answeredAtMs)}, process since ${time(replica.startedAtMs)}`;
  for (const listed of list.pools) {
    const pool = known.get(listed.key.dgd_name);
    findings.check(pool?.isShownBy(listed, { isNow: false }) === true, () => {
      return tell("lists what nobody has registered:", brief(listed));
    });
    if (pool !== undefined) {
      const dead = deadFor(pool, reading, truth);
      findings.check(dead === undefined, () => tell("lists", `${pool.name}, ${dead}`));
    }
  }
  for (const pool of truth.pools) {
    if (find(list.pools, pool.registration.key) !== undefined) continue;
    const owed = owedFor(pool, reading, truth);
    findings.check(owed === undefined, () => tell("does not list", `${pool.name}, ${owed}`));
  }
}

/** Why a pool that is listed should not be; undefined where it may. */
function deadFor(pool: Pool, reading: Reading, { hasTable, cluster }: Truth): string | undefined {
  const { replica, sentAtMs, list } = reading;
  const lastMs = pool.lastRenewalMs();
  const allowanceMs = hasTable ? (SECS.skew + SECS.grace) * 1000 + STALE_MS : UNNOTICED_MS;
  const pausedMs = Math.max(replica.pausedMs(lastMs), replica.noticedPausesMs(lastMs));
  if (sentAtMs > lastMs + LEASE_MS + allowanceMs + POLL_MS + pausedMs) {
    return `which was last registered ${sentAtMs - lastMs} ms before`;
  }
  if (cluster === undefined || !list.complete) return undefined;
  const { relays, sinceMs } = cluster.importedOf(pool);
  if (relays.length > 0 || sinceMs > sentAtMs - SLICES_STALE_MS) return undefined;
  return `whose relays were taken away ${sentAtMs - sinceMs} ms before`;
}

/** Why a pool that is not listed should be; undefined where it need not. */
function owedFor(pool: Pool, reading: Reading, { hasTable, cluster }: Truth): string | undefined {
  const { replica, process, sentAtMs, answeredAtMs, list } = reading;
  if (cluster !== undefined) {
    const { relays, sinceMs } = cluster.importedOf(pool);
    if (relays.length === 0 || sinceMs > sentAtMs - SLICES_STALE_MS) return undefined;
    // A process that has just been started may not have read them.
    if (!list.complete) return undefined;
  }
  if (process !== undefined) {
    const own = pool.acknowledgedSince(sentAtMs, { replica, process });
    if (answeredAtMs < own + LEASE_MS) {
      return `which it acknowledged itself, sent at ${time(own)}`;
    }
  }
  if (!list.complete || !hasTable) return undefined;
  const atMs = sentAtMs - STALE_MS - UNNOTICED_MS;
  const acknowledged = pool.acknowledgedSince(atMs);
  if (answeredAtMs >= acknowledged + LEASE_MS) return undefined;
  return `which was acknowledged, sent at ${time(acknowledged)}`;
}

/** The lists as they are to be once all is well: undefined where this one is, else what is not. */
export function differsFromTruth(list: PoolList, { pools, cluster }: Truth): string | undefined {
  if (!list.complete) return "it is not complete";
  const owed = pools.filter(
    (pool) => cluster === undefined || cluster.importedOf(pool).relays.length > 0,
  );
  if (list.pools.length !== owed.length) return `it lists ${list.pools.length} of ${owed.length}`;
  for (const pool of owed) {
    const listed = find(list.pools, pool.registration.key);
    if (listed === undefined) return `it lacks ${pool.name}`;
    if (!pool.isShownBy(listed, { isNow: true })) return `it shows ${brief(listed)}`;
    if (cluster !== undefined && !isJoined(listed, cluster.importedOf(pool))) {
      return `it joins ${brief(listed)}`;
    }
  }
  return undefined;
}

function isJoined(
  { relay_identities, frontends }: ListedPool,
  imported: { readonly relays: readonly string[]; readonly frontends: readonly string[] },
): boolean {
  return (
    Bun.deepEquals(relay_identities, imported.relays.map((each) => `ip:${each}`).sort()) &&
    Bun.deepEquals(frontends, imported.frontends.map((each) => `http://${each}:8000/`).sort())
  );
}

function time(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
