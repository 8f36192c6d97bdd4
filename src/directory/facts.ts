import type { LeftOut } from "../kubernetes/left-out.ts";
import type { LeftOutReason } from "../kubernetes/ownership.ts";
import type { WatchFacts } from "../kubernetes/reflector.ts";
import type { RegistrationCounts } from "../registrations/counts.ts";
import type { TableFacts } from "../registrations/store.ts";

/** What a directory's lists are made of, as of now. */
export interface DirectoryFacts {
  readonly pools: {
    /** Those that `GET /pools` lists, or would once it can. */
    readonly listed: number;
    readonly registered: number;
  };
  /** Why the list may lack a pool, in words; none where it is complete. */
  readonly incompleteReasons: readonly string[];
  readonly registrations: RegistrationCounts;
  /** Null in a mode that reads none. */
  readonly slices: SliceFacts | null;
  /** Null for a store without a table. */
  readonly table: TableFacts | null;
}

/** How many slices there are, by what became of them, and how they are followed. */
export interface SliceFacts {
  readonly used: number;
  readonly leftOut: Readonly<Record<LeftOutReason, LeftOut>>;
  /** Whether they have all been read at least once. */
  readonly isSynced: boolean;
  /** Whether they are surely as they were just now. */
  readonly isCurrent: boolean;
  readonly watch: WatchFacts;
}
