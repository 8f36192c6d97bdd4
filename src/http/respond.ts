import type { Coding, Representation } from "../directory/representation.ts";
import { type ErrorCode, ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import { oneLine } from "../runtime/text.ts";
import { chooseCoding, isUnchanged } from "./negotiate.ts";

/** The answer to a `GET` of a list: its body, or 304 where the client has that already. */
export function listResponse(request: Request, representation: Representation): Response {
  const coding = chooseCoding(request, representation);
  if (isUnchanged(request, representation)) {
    return new Response(null, { status: 304, headers: headersOf(representation, coding, 304) });
  }
  const headers = headersOf(representation, coding, 200);
  return new Response(representation.in(coding), { headers });
}

/** The headers of the answers that have been given with a representation, to be made only once. */
const knownHeaders = new WeakMap<Representation, Map<string, Headers>>();

function headersOf(representation: Representation, coding: Coding, status: 200 | 304): Headers {
  let known = knownHeaders.get(representation);
  if (known === undefined) {
    known = new Map();
    knownHeaders.set(representation, known);
  }
  const name = `${status} ${coding}`;
  let headers = known.get(name);
  if (headers === undefined) {
    headers = new Headers({
      "Content-Type": "application/json",
      "Cache-Control": "no-cache",
      ETag: representation.etags[coding],
      Vary: "Accept-Encoding",
    });
    if (status === 200 && coding !== "identity") headers.set("Content-Encoding", coding);
    known.set(name, headers);
  }
  return headers;
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
    headers: { "Content-Type": "text/plain; charset=utf-8", ...headers },
  });
}
