import Negotiator from "negotiator";
import type { Coding, Representation } from "../directory/representation.ts";
import { limits } from "../runtime/limits.ts";

const CODINGS = ["zstd", "gzip", "identity"] as const satisfies readonly Coding[];

/** The coding in which to send a body to this client (RFC 9110, section 12.5.3). */
export function chooseCoding(request: Request, { bytes }: Pick<Representation, "bytes">): Coding {
  if (bytes.length <= limits.uncompressedBytes) return "identity";
  const accepted = request.headers.get("accept-encoding");
  if (accepted === null) return "identity";
  const [best] = new Negotiator({ headers: { "accept-encoding": accepted } }).encodings(
    [...CODINGS],
    // Among codings that the client likes equally well, the one that costs less.
    { preferred: [...CODINGS] },
  );
  return CODINGS.find((coding) => coding === best) ?? "identity";
}

/**
 * Whether the client has this content already (`If-None-Match`, RFC 9110, section 13.1.2). It has,
 * in whichever coding: the ETag of any of them stands for the same content.
 */
export function isUnchanged(request: Request, representation: Representation): boolean {
  const condition = request.headers.get("if-none-match");
  if (condition === null) return false;
  const etags = Object.values(representation.etags);
  // What nearly every client sends.
  if (etags.includes(condition)) return true;
  if (condition.trim() === "*") return true;
  const listed = condition.match(/"[^"]*"/g) ?? [];
  return listed.some((etag) => etags.includes(etag));
}
