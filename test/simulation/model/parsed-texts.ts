import type { Registration } from "../../../src/pools/pool.ts";
import { parseText } from "../../../src/registrations/dynamodb/item.ts";

const parsed = new Map<string, Registration | undefined>();

/** The registration that an item's text says, if any. Each is read but once: the same few come again and again. */
export function parse(id: string, text: string): Registration | undefined {
  const known = `${id} ${text}`;
  if (!parsed.has(known)) {
    if (parsed.size > 10_000) parsed.clear();
    parsed.set(known, parseText(id, text));
  }
  return parsed.get(known);
}
