import {
  API_TROUBLES,
  type Fault,
  type FaultKind,
  FOR_EVER_MS,
  ITEM_TROUBLES,
  type Plan,
  type PoolPlan,
  type ReplicaPlan,
  type Settings,
  SLICE_CHANGES,
  TABLE_TROUBLES,
} from "./plan.ts";
import { Random } from "./random.ts";

export const REGIONS = ["us-west-2", "eu-central-1"] as const;

/** Clusters whose names begin alike, so that a name may be taken for another's. */
const CLUSTERS = ["a", "a-b", "a-b-a", "b"] as const;
const NAMESPACES = ["dynamo", "other"] as const;

const KINDS = {
  always: ["messages", "disagree", "gone", "pause", "restart", "wall"],
  dynamodb: ["failover", "table", "table", "partition", "lag", "item"],
  imported: ["api", "cut", "cut", "compact", "slices", "slices", "slices"],
} as const satisfies Record<string, readonly FaultKind[]>;

/** The plan that a seed makes. */
export function planOf(seed: string): Plan {
  const random = new Random(seed).fork("plan");
  const mode = random.pick(["registrations", "registrations", "karmada", "mcs"] as const);
  const store = random.pick(["memory", "dynamodb", "dynamodb"] as const);
  const settings = settingsOf(random.fork("settings"), mode);
  // It takes half a minute without a watch for a list not to be complete.
  const faultsForMs =
    1000 * random.int(10, mode === "registrations" ? random.pick([40, 120]) : 120);
  const replicas = replicasOf(random.fork("replicas"), store, settings);
  const pools = poolsOf(random.fork("pools"));
  const shape = { seed, mode, store, settings, faultsForMs, replicas, pools };
  return { ...shape, faults: faultsFor(random.fork("faults"), shape) };
}

function settingsOf(random: Random, mode: Plan["mode"]): Settings {
  // Watches have time-outs of minutes, so those runs are longer.
  const heartbeatSecs = random.pick(mode === "registrations" ? [1, 2, 5] : [2, 5]);
  const leaseSecs = heartbeatSecs * random.int(3, 4) + 1;
  // A renewal has to reach every replica before the last one lapses, or lists flap without a fault: it
  // may come one heartbeat after that, be replicated for a second, and wait for the next poll.
  const mostPollSecs = Math.floor((leaseSecs - 1.05 * heartbeatSecs - 1.2) / 1.1);
  return {
    heartbeatSecs,
    leaseSecs,
    pollSecs: random.int(1, Math.min(3, mostPollSecs)),
    graceSecs: random.pick([0, 5, 30]),
    skewSecs: random.int(0, Math.min(2, leaseSecs - 1)),
    pageSize: random.int(1, 8),
    isAlwaysChecked: random.chance(0.2),
    hasWaiters: random.chance(0.3),
  };
}

function replicasOf(random: Random, store: Plan["store"], settings: Settings): ReplicaPlan[] {
  const perRegion =
    store === "memory"
      ? random.pick([
          [1, 0],
          [1, 1],
        ])
      : random.pick([
          [2, 0],
          [1, 1],
          [2, 1],
          [2, 2],
        ]);
  // The clocks of any two are within the skew of each other, or hardly so.
  const mostErrorMs = settings.skewSecs * 500;
  return REGIONS.flatMap((region, index) =>
    Array.from({ length: perRegion[index] ?? 0 }, (_, number) => ({
      name: `${region}/${number}`,
      region,
      driftPpm: random.int(-200, 200),
      wallErrorMs: random.int(-mostErrorMs, mostErrorMs),
    })),
  );
}

function poolsOf(random: Random): PoolPlan[] {
  return Array.from({ length: random.int(1, random.pick([2, 6, 24])) }, (_, number) => ({
    name: `p${number}`,
    cluster: random.pick(CLUSTERS),
    namespace: random.pick(NAMESPACES),
    region: random.pick(REGIONS),
    relays: Array.from({ length: random.int(1, 3) }, (_, relay) => `p${number}/${relay}`),
  }));
}

function faultsFor(random: Random, shape: Omit<Plan, "faults">): Fault[] {
  const kinds: FaultKind[] = [...KINDS.always];
  if (shape.store === "dynamodb") kinds.push(...KINDS.dynamodb);
  if (shape.mode !== "registrations") kinds.push(...KINDS.imported);
  // A run has some kinds of fault and not others, or each would hide what only another shows.
  const some = kinds.filter(() => random.chance(0.5));
  if (some.length === 0) return [];
  const count = random.int(0, Math.ceil(shape.faultsForMs / 2500));
  return Array.from({ length: count }, () => faultOf(random, random.pick(some), shape)).sort(
    (a, b) => a.atMs - b.atMs,
  );
}

function faultOf(random: Random, kind: FaultKind, shape: Omit<Plan, "faults">): Fault {
  const leaseMs = shape.settings.leaseSecs * 1000;
  const atMs = random.int(0, shape.faultsForMs);
  const within = (leastMs: number, mostMs: number) => ({
    atMs,
    forMs: Math.min(random.int(leastMs, mostMs), shape.faultsForMs - atMs),
  });
  const replica = random.pick(shape.replicas).name;
  const region = random.pick(shape.replicas).region;
  const pool = random.pick(shape.pools).name;
  switch (kind) {
    case "messages":
      return {
        kind,
        ...within(1000, 30_000),
        loss: random.pick([0, 0.1, 0.5]),
        twice: random.pick([0, 0.3]),
        delayMs: random.pick([50, 2000, 15_000]),
      };
    case "disagree":
      return { kind, ...within(5000, 60_000), relay: random.pick(random.pick(shape.pools).relays) };
    case "gone":
      // Some never come back.
      if (random.chance(0.2)) return { kind, atMs, forMs: FOR_EVER_MS, pool };
      return { kind, ...within(leaseMs / 2, 4 * leaseMs), pool };
    case "failover":
      return { kind, ...within(leaseMs / 2, 4 * leaseMs), pool };
    case "pause":
      return {
        kind,
        ...within(50, random.pick([1200, 5000, 2 * leaseMs])),
        replica,
        order: random.pick(["timers first", "input first", "mixed"]),
      };
    case "restart":
      return { kind, ...within(10, 10_000), replica };
    case "wall":
      return {
        kind,
        ...within(500, 40_000),
        replica,
        byMs: random.pick([-1, 1]) * random.pick([800, 5000, leaseMs, 3_600_000, 5 * 3_600_000]),
      };
    case "table":
      return {
        kind,
        ...within(500, 20_000),
        region,
        replica: random.chance(0.5) ? replica : undefined,
        how: random.pick(TABLE_TROUBLES),
      };
    case "partition":
      return { kind, ...within(2000, 90_000) };
    case "lag":
      return { kind, ...within(2000, 60_000), lagMs: random.int(1000, 60_000) };
    case "item":
      return { kind, atMs, forMs: 0, region, pool, how: random.pick(ITEM_TROUBLES) };
    case "api":
      return {
        kind,
        ...within(500, random.pick([5000, 90_000])),
        replica: random.chance(0.5) ? replica : undefined,
        how: random.pick(API_TROUBLES),
      };
    case "cut":
      return {
        kind,
        atMs,
        forMs: 0,
        replica,
        // Silence takes minutes to be noticed.
        how: random.chance(0.1) ? "silence" : random.pick(["end", "error", "expired"]),
      };
    case "compact":
      return { kind, atMs, forMs: 0 };
    case "slices":
      return { kind, atMs, forMs: 0, pool, how: random.pick(SLICE_CHANGES) };
  }
}
