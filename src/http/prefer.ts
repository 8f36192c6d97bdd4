const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/.source;
const QUOTED = /"(?:\\.|[^"\\])*"/.source;
/** One member of a list, up to the comma; a quote that never ends takes all that follows. */
const MEMBER = /(?:"(?:\\.|[^"\\])*"?|[^",])+/g;
const PREFERENCE = new RegExp(
  `^[ \\t]*(${TOKEN})[ \\t]*(?:=[ \\t]*(?:(${TOKEN}|${QUOTED})[ \\t]*)?)?(?:;.*)?$`,
);

/**
 * For how many seconds a client would like to wait (`Prefer: wait=10`, RFC 7240, sections 2 and 4.3);
 * undefined where it does not say. What is malformed is as if it weren't there, and of a preference
 * that is repeated the first counts.
 */
export function preferredWaitSecs(headers: Headers): number | undefined {
  const header = headers.get("prefer");
  if (header === null) return undefined;
  for (const member of header.match(MEMBER) ?? []) {
    const [, name, value = ""] = PREFERENCE.exec(member) ?? [];
    if (name?.toLowerCase() !== "wait") continue;
    const text = value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
    return /^[0-9]+$/.test(text) ? Number(text) : undefined;
  }
  return undefined;
}
