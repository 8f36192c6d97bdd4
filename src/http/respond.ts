import type { Coding, Representation } from "../directory/representation.ts";
import { type ErrorCode, ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import { oneLine } from "../runtime/text.ts";
import { chooseCoding, isUnchanged } from "./negotiate.ts";

/**
 * The answer to a `GET` of a list: its body, or 304 where the client has that already. `waitSecs` is
 * how long the client was allowed to wait for it, where it was.
 */
export function listResponse(
  request: Request,
  representation: Representation,
  waitSecs?: number,
): Response {
  const coding = chooseCoding(request, representation);
  const status = isUnchanged(request, representation) ? 304 : 200;
  const { body, init } = partsOf(representation, coding, status, waitSecs);
  return new Response(body, init);
}

/** No browser takes what a client once sent, and is repeated here, for a page. */
const NO_SNIFFING = { "X-Content-Type-Options": "nosniff" };

/** What an answer is made of. */
interface Parts {
  readonly body: Blob | null;
  readonly init: ResponseInit;
}

/** Parts by coding, and by how long the client was allowed to wait, where it was. */
type KnownParts = Partial<Record<Coding, Map<number | undefined, Parts>>>;

/** The parts of the answers that have been given with a representation, to be made only once. */
const knownParts = new WeakMap<Representation, Readonly<Record<200 | 304, KnownParts>>>();

function partsOf(
  representation: Representation,
  coding: Coding,
  status: 200 | 304,
  waitSecs: number | undefined,
): Parts {
  let known = knownParts.get(representation);
  if (known === undefined) {
    known = { 200: {}, 304: {} };
    knownParts.set(representation, known);
  }
  known[status][coding] ??= new Map();
  const byWait = known[status][coding];
  let parts = byWait.get(waitSecs);
  if (parts === undefined) {
    const headers = new Headers({
      "Content-Type": "application/json",
      "Cache-Control": "no-cache",
      ETag: representation.etags[coding],
      Vary: "Accept-Encoding",
      ...NO_SNIFFING,
    });
    if (status === 200 && coding !== "identity") headers.set("Content-Encoding", coding);
    if (waitSecs !== undefined) headers.set("Preference-Applied", `wait=${waitSecs}`);
    const body = status === 304 ? null : representation.in(coding);
    parts = { body, init: { status, headers } };
    byWait.set(waitSecs, parts);
  }
  return parts;
}

const STATUS: Readonly<Record<ErrorCode, number>> = {
  usage: 500,
  startup: 500,
  invalid: 400,
  "too-large": 413,
  "unsupported-media-type": 415,
  unavailable: 503,
};

/** The answer to a request that failed with `error`. */
export function errorResponse(error: unknown): Response {
  return error instanceof ServiceError
    ? refusal(STATUS[error.code], error.message)
    : refusal(500, "internal error");
}

/** An error as a line of plain text. */
export function refusal(
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(oneLine(reason, limits.reasonChars), {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...NO_SNIFFING, ...headers },
  });
}
