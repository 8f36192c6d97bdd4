import type { Coding, Representation } from "../directory/representation.ts";
import { limits } from "../runtime/limits.ts";

const CODINGS = ["zstd", "gzip", "identity"] as const satisfies readonly Coding[];

/** The coding in which to send a body to this client (RFC 9110, section 12.5.3). */
export function chooseCoding(request: Request, { size }: Pick<Representation, "size">): Coding {
  if (size <= limits.uncompressedBytes) return "identity";
  const accepted = request.headers.get("accept-encoding");
  if (accepted === null) return "identity";
  let coding = knownChoices.get(accepted);
  if (coding === undefined) {
    coding = choose(accepted);
    if (knownChoices.size >= limits.knownAcceptEncodings) knownChoices.clear();
    knownChoices.set(accepted, coding);
  }
  return coding;
}

/**
 * What was chosen for the values of `Accept-Encoding` that came last. Clients send few different
 * ones, and where thousands are answered at once, choosing would be most of the work.
 */
const knownChoices = new Map<string, Coding>();

function choose(accepted: string): Coding {
  // Loaded with the first value: it would be a twelfth of a start.
  const Negotiator: typeof import("negotiator") = require("negotiator");
  const [best] = new Negotiator({ headers: { "accept-encoding": accepted } }).encodings(
    [...CODINGS],
    // Among codings that the client likes equally well, the one that costs less.
    { preferred: [...CODINGS] },
  );
  return CODINGS.find((coding) => coding === best) ?? "identity";
}

/** What the client says that it has already, as `isUnchanged` takes it; null where it says nothing. */
export function conditionOf({ headers }: Request): string | null {
  return headers.get("if-none-match");
}

/**
 * Whether a client with this condition has this content already (`If-None-Match`, RFC 9110, section
 * 13.1.2). It has, in whichever coding: the ETag of any of them stands for the same content.
 */
export function isUnchanged(condition: string | null, { etags }: Representation): boolean {
  if (condition === null) return false;
  const { identity, gzip, zstd } = etags;
  if (condition === zstd || condition === gzip || condition === identity) return true;
  // One strong ETag, which is what nearly every client sends, and it is not among them.
  if (condition.startsWith('"') && condition.indexOf('"', 1) === condition.length - 1) return false;
  if (condition.trim() === "*") return true;
  const known = [identity, gzip, zstd];
  const listed = condition.match(/"[^"]*"/g) ?? [];
  return listed.some((etag) => known.includes(etag));
}
