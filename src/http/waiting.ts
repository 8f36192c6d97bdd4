import type { ListWaiters } from "../directory/waiters.ts";
import { limits } from "../runtime/limits.ts";
import type { Answer } from "./answer.ts";
import { conditionOf, isUnchanged } from "./negotiate.ts";
import { preferredWaitSecs } from "./prefer.ts";
import { listAnswer } from "./respond.ts";
import type { Handler } from "./routes.ts";

/** The answer to a client that has gone away, which nobody gets: what nginx calls it in its log. */
const CLIENT_CLOSED_REQUEST = 499;

const GONE: Answer = {
  status: CLIENT_CLOSED_REQUEST,
  headers: {},
  body: null,
  mayHaveWaited: true,
};

/**
 * Answers a `GET` of a list: at once, or where the client has the list and would rather wait for
 * another (`Prefer: wait=N`, RFC 7240) with a promise.
 */
export function listHandler(waiters: ListWaiters): Handler {
  return (request, server) => {
    const condition = conditionOf(request);
    const waitSecs = appliedWaitSecs(request, condition);
    if (waitSecs === undefined || !waiters.isOpen()) {
      return listAnswer(request, condition, waiters.list());
    }
    if (waitSecs === 0) return listAnswer(request, condition, waiters.list(), waitSecs);
    const { promise, resolve } = Promise.withResolvers<Answer>();
    waiters.hold({
      has: (list) => isUnchanged(condition, list),
      waitMs: waitSecs * 1000,
      signal: request.signal,
      answer(list) {
        if (list === undefined) {
          resolve(GONE);
          return;
        }
        // Bun does not do this by itself.
        server.timeout(request, limits.idleSecs);
        resolve(listAnswer(request, condition, list, waitSecs));
      },
    });
    // It is silent for longer than a connection may be otherwise.
    server.timeout(request, waitSecs + limits.idleSecs);
    return promise;
  };
}

/** How long to wait at most, in seconds; undefined where there is nothing to wait for. */
function appliedWaitSecs({ headers }: Request, condition: string | null): number | undefined {
  if (condition === null) return undefined;
  const waitSecs = preferredWaitSecs(headers);
  // No change would ever differ from any content at all.
  if (waitSecs === undefined || condition.trim() === "*") return undefined;
  return Math.min(waitSecs, limits.waitSecs);
}
