import type { PoolKey } from "../pools/pool.ts";
import type { DisagreementFacts } from "../registrations/disagreements.ts";
import type { RegistrationFacts } from "../registrations/store.ts";
import { limits } from "../runtime/limits.ts";

/** Whether a pool is listed, and why, as of now. Null stands for what is not known. */
export interface PoolFacts {
  readonly key: PoolKey;
  readonly listed: boolean;
  /** In words: where it is not listed, why; where it is, what is odd. */
  readonly reasons: readonly string[];
  readonly registeredMsAgo: number | null;
  readonly leaseLeftMs: number | null;
  /** The region that its registration was written in. */
  readonly writtenIn: string | null;
  readonly relaysReady: number | null;
  readonly frontendsReady: number | null;
  readonly disagreements: Pick<DisagreementFacts, "count" | "fields">;
}

/** What a mode knows of a pool besides its registration. */
export interface PoolView {
  /** Why nothing can be listed yet; undefined once it can. */
  readonly unreadyReason: string | undefined;
  /** What a live registration lacks to be listed. */
  readonly lacks: readonly string[];
  /** What is odd about it where it is listed. */
  readonly oddities: readonly string[];
  readonly relaysReady: number | null;
  readonly frontendsReady: number | null;
}

/** Puts together what is known of a pool. */
export function poolFacts(
  key: PoolKey,
  registration: RegistrationFacts | undefined,
  view: PoolView,
): PoolFacts {
  const { unreadyReason, lacks, oddities, relaysReady, frontendsReady } = view;
  const obstacles =
    unreadyReason === undefined ? [...absenceOf(key, registration), ...lacks] : [unreadyReason];
  return {
    key,
    listed: obstacles.length === 0,
    reasons: obstacles.length === 0 ? [...odditiesOf(registration), ...oddities] : obstacles,
    registeredMsAgo: registration?.registeredMsAgo ?? null,
    leaseLeftMs: registration?.leaseLeftMs ?? null,
    writtenIn: registration?.writtenIn ?? null,
    relaysReady,
    frontendsReady,
    disagreements: {
      count: registration?.disagreements.count ?? 0,
      fields: registration?.disagreements.fields ?? [],
    },
  };
}

/** Why there is no live registration; nothing where there is one. */
function absenceOf(key: PoolKey, registration: RegistrationFacts | undefined): readonly string[] {
  if (registration === undefined) return [`no registration from cluster ${key.cluster_id}`];
  return registration.isLive ? [] : registration.reasons;
}

/** Relays that disagree do so with each heartbeat; what was long ago was a change of settings. */
function odditiesOf(registration: RegistrationFacts | undefined): readonly string[] {
  if (registration === undefined) return [];
  const { reasons, disagreements } = registration;
  const { fields, lastMsAgo } = disagreements;
  if (lastMsAgo === null || lastMsAgo > limits.warningEveryMs) return reasons;
  const secs = Math.floor(lastMsAgo / 1000);
  return [...reasons, `registered differently ${secs} s ago, in ${fields.join(", ")}`];
}
