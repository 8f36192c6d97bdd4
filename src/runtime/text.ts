import { limits } from "./limits.ts";

/** Control characters: what no string of the wire format may hold (Unicode category Cc). */
export const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * Characters that could break a line in two, hide text or turn it around, and surrogates without
 * a partner, which have no UTF-8 form.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** `text` as one line that a terminal shows as it is, cut to `maxChars` UTF-16 code units. */
export function oneLine(text: string, maxChars: number): string {
  // Cut first, so that the cost is bounded however long the text is.
  const line = text
    .slice(0, maxChars + 1)
    .replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return line.length <= maxChars ? line : `${line.slice(0, maxChars - 1).toWellFormed()}…`;
}

/** JSON of the same meaning that a terminal shows as it is, on one line whatever counts as a line's end. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, (character) =>
    Array.from({ length: character.length }, (_, at) => {
      const code = character.charCodeAt(at).toString(16).padStart(4, "0");
      return `\\u${code}`;
    }).join(""),
  );
}

/** A user's input between quotes, safe to repeat to them or to a log. */
export function quoted(text: string): string {
  return `'${oneLine(text, limits.quotedChars)}'`;
}

/** Whether there is nothing to see in `text`: it is empty, or only Unicode white space. */
export function isBlank(text: string): boolean {
  return !/\P{White_Space}/u.test(text);
}
