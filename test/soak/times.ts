/** What all replicas are started with, in seconds. */
export const SECS = { heartbeat: 2, lease: 10, poll: 1, skew: 1, grace: 4 } as const;

export const LEASE_MS = SECS.lease * 1000;
export const POLL_MS = SECS.poll * 1000;

/** A list is complete only where a read has begun this long ago at most (REFERENCE section 5). */
export const STALE_MS = 3 * POLL_MS;
/** Up to so long a gap, and the beat that finds it, no pause is noticed. */
export const UNNOTICED_MS = 1500;
/** The longest that a process is stopped, or a connection hangs. */
export const LONGEST_FAULT_MS = 20_000;
/**
 * For how long slices may be out of date in a list that is complete: 30 s without a watch, behind one
 * that hangs unnoticed, and the time to catch up.
 */
export const SLICES_STALE_MS = 30_000 + LONGEST_FAULT_MS + 15_000;
/** How late what was sent to a process may be carried out, once that runs. */
export const LATE_MS = 5000;
