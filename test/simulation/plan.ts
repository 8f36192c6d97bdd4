import type { WakeOrder } from "./machine.ts";

/**
 * One run as data: what there is, and what goes wrong when. A seed makes a plan (`planOf`), and a plan
 * that breaks an invariant is shrunk by leaving parts of it out. All times are in milliseconds of
 * true time since the start of the run.
 */
export interface Plan {
  /** Decides what is left to chance while the plan is carried out: delays, spreads, who is asked. */
  readonly seed: string;
  readonly mode: "registrations" | "karmada" | "mcs";
  readonly store: "memory" | "dynamodb";
  readonly settings: Settings;
  /** How long the faults may go on; what comes after is the healing. */
  readonly faultsForMs: number;
  readonly replicas: readonly ReplicaPlan[];
  readonly pools: readonly PoolPlan[];
  readonly faults: readonly Fault[];
}

export interface Settings {
  readonly leaseSecs: number;
  readonly heartbeatSecs: number;
  readonly pollSecs: number;
  readonly graceSecs: number;
  readonly skewSecs: number;
  /** Most items of a page of the table, and most slices of a page of the API server. */
  readonly pageSize: number;
  /**
   * Whether each step of a replica is checked, or only what a router or a probe is answered. Looking
   * brings a replica up to date, and so may hide what it does when nobody looks.
   */
  readonly isAlwaysChecked: boolean;
  /** Whether some routers wait for lists to change, for which replicas look at them all the time. */
  readonly hasWaiters: boolean;
}

export interface ReplicaPlan {
  readonly name: string;
  readonly region: string;
  readonly driftPpm: number;
  readonly wallErrorMs: number;
}

export interface PoolPlan {
  readonly name: string;
  readonly cluster: string;
  readonly namespace: string;
  readonly region: string;
  readonly relays: readonly string[];
}

/** What goes wrong from `atMs` on, for `forMs`. */
export type Fault = { readonly atMs: number; readonly forMs: number } & (
  | {
      readonly kind: "messages";
      readonly loss: number;
      readonly twice: number;
      readonly delayMs: number;
    }
  /** A relay says something else of its pool than the others. */
  | { readonly kind: "disagree"; readonly relay: string }
  /** A pool is gone: its relays are silent. */
  | { readonly kind: "gone"; readonly pool: string }
  /** A pool's relays turn to the other region. */
  | { readonly kind: "failover"; readonly pool: string }
  | { readonly kind: "pause"; readonly replica: string; readonly order: WakeOrder }
  | { readonly kind: "restart"; readonly replica: string }
  | { readonly kind: "wall"; readonly replica: string; readonly byMs: number }
  | {
      readonly kind: "table";
      readonly region: string;
      readonly replica: string | undefined;
      readonly how: TableTrouble;
    }
  /** Nothing is replicated between the regions. */
  | { readonly kind: "partition" }
  | { readonly kind: "lag"; readonly lagMs: number }
  | {
      readonly kind: "item";
      readonly region: string;
      readonly pool: string;
      readonly how: ItemTrouble;
    }
  | { readonly kind: "api"; readonly replica: string | undefined; readonly how: ApiTrouble }
  | {
      readonly kind: "cut";
      readonly replica: string;
      readonly how: "end" | "error" | "silence" | "expired";
    }
  /** The API server forgets what has led to the present state. */
  | { readonly kind: "compact" }
  | { readonly kind: "slices"; readonly pool: string; readonly how: SliceChange }
);

export type FaultKind = Fault["kind"];

export const TABLE_TROUBLES = [
  "throttled",
  "error",
  "hang",
  "slow",
  "half reads",
  "no reads",
  "lost answers",
  "late writes",
  "deaf",
] as const;
export type TableTrouble = (typeof TABLE_TROUBLES)[number];

export const ITEM_TROUBLES = [
  "deleted",
  "no JSON",
  "no lease",
  "no region",
  "another key",
] as const;
export type ItemTrouble = (typeof ITEM_TROUBLES)[number];

export const API_TROUBLES = ["denied", "error", "hang", "stale", "short watches"] as const;
export type ApiTrouble = (typeof API_TROUBLES)[number];

export const SLICE_CHANGES = [
  "other endpoints",
  "none ready",
  "split",
  "merge",
  "relabel",
  "remove",
  "restore",
] as const;
export type SliceChange = (typeof SLICE_CHANGES)[number];

/** How long a pool is gone that never comes back. */
export const FOR_EVER_MS = 1e9;

/** Whether a fault is at work at a moment. */
export function isActive({ atMs, forMs }: Fault, nowMs: number): boolean {
  return atMs <= nowMs && nowMs < atMs + forMs;
}

/** The faults of one kind. */
export function faultsOf<K extends FaultKind>(plan: Plan, kind: K): Extract<Fault, { kind: K }>[] {
  return plan.faults.filter((fault): fault is Extract<Fault, { kind: K }> => fault.kind === kind);
}
