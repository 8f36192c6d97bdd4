import type { Coding, Representation } from "../directory/representation.ts";
import { type ErrorCode, ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import { oneLine } from "../runtime/text.ts";
import type { Answer } from "./answer.ts";
import { chooseCoding, isUnchanged } from "./negotiate.ts";

/**
 * The answer to a `GET` of a list: its body, or 304 where the client has that already, by the condition
 * of its request. `waitSecs` is how long the client was allowed to wait for it, where it was.
 */
export function listAnswer(
  request: Request,
  condition: string | null,
  representation: Representation,
  waitSecs?: number,
): Answer {
  const coding = chooseCoding(request, representation);
  const status = isUnchanged(condition, representation) ? 304 : 200;
  let known = knownAnswers.get(representation);
  if (known === undefined) {
    known = { 200: {}, 304: {} };
    knownAnswers.set(representation, known);
  }
  const ofStatus = known[status];
  ofStatus[coding] ??= new Map();
  const byWait = ofStatus[coding];
  let answer = byWait.get(waitSecs);
  if (answer === undefined) {
    answer = makeListAnswer(representation, coding, status, waitSecs);
    byWait.set(waitSecs, answer);
  }
  return answer;
}

/** No browser takes what a client once sent, and is repeated here, for a page. */
const NO_SNIFFING = { "X-Content-Type-Options": "nosniff" };

/** Answers by coding, and by how long the client was allowed to wait, where it was. */
type KnownAnswers = Partial<Record<Coding, Map<number | undefined, Answer>>>;

/** The answers that have been given with a representation, to be made only once. */
const knownAnswers = new WeakMap<Representation, Readonly<Record<200 | 304, KnownAnswers>>>();

function makeListAnswer(
  representation: Representation,
  coding: Coding,
  status: 200 | 304,
  waitSecs: number | undefined,
): Answer {
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
  return { status, headers, body, mayHaveWaited: waitSecs !== undefined };
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
export function errorAnswer(error: unknown): Answer {
  return error instanceof ServiceError
    ? refusal(STATUS[error.code], error.message)
    : refusal(500, "internal error");
}

/** An error as a line of plain text. */
export function refusal(
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...NO_SNIFFING, ...headers },
    body: oneLine(reason, limits.reasonChars),
  };
}
