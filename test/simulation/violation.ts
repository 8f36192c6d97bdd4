/** What has to hold at each step. The names are those that a failing run and docs/design.md give. */
export const INVARIANTS = {
  "live stays": "no live pool leaves a list within its lease",
  "dead goes": "no pool stays beyond its lease, the skew, the grace and the pauses",
  "own write": "a replica lists what it acknowledged, at once",
  complete: "complete is true only where the list surely holds every live pool, and then it is",
  content:
    "a pool is listed as it was registered, in the order that came first, and as it is imported",
  etag: "equal content has an equal ETag, and other content another",
  versions: "a watch goes on from the last version that was seen",
  ready: "a list is told once all that it is of has been read, and from then on",
  healing: "after the faults every list equals the truth",
  deadlines:
    "a heartbeat that is not kept within half the heartbeat interval is refused, and not sent later",
  log: "the log tells each pool's coming and going once, and disagreements once a minute",
  waits:
    "who waits for a change is told each that lasts within 0.25 s, or else what it has when its time is over",
  bounds: "timers and waiters stay bounded, and all have ended once a replica is closed",
  errors: "nothing is thrown that the caller is not told of",
} as const;

export type Invariant = keyof typeof INVARIANTS;

export interface Violation {
  readonly invariant: Invariant;
  readonly atMs: number;
  readonly replica: string;
  readonly message: string;
}
