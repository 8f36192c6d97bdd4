import type { DirectoryFacts } from "../../src/directory/facts.ts";
import type { WatchFacts } from "../../src/kubernetes/reflector.ts";
import { newCounts } from "../../src/registrations/counts.ts";

/** A watch of which nothing has been heard. */
export const unwatched: WatchFacts = {
  heardAtWallMs: undefined,
  restarts: { end: 0, expired: 0, denied: 0, silent: 0, error: 0 },
};

/** What is the case of a directory in which nothing has happened, but for what is given. */
export function makeFacts(overrides: Partial<DirectoryFacts> = {}): DirectoryFacts {
  return {
    pools: { listed: 0, registered: 0 },
    incompleteReasons: [],
    registrations: newCounts(),
    slices: null,
    table: null,
    ...overrides,
  };
}
