import { type Decoded, decode, finite, type Item, itemOf } from "./item.ts";

/** A page of what a Query found. */
export interface Page {
  readonly items: readonly Decoded[];
  /** The key behind which the next page begins; undefined for the last one. */
  readonly next: Item | undefined;
}

/** An item as it was sent, around the digits of when it was renewed. */
interface Seen {
  readonly id: string;
  readonly before: string;
  readonly after: string;
  decoded: Decoded;
}

/** How the parts of an answer begin and end. Quotation marks within strings have a backslash. */
const LIST = '"Items":[';
const RENEWED_AT = '"renewed_at":{"N":"';
const BETWEEN_ITEMS = '}},{"';
const LAST_ITEM_END = "}}]";

/**
 * Reads the items of a table from the answers to Queries, again and again.
 *
 * Most items are sent as they were before, to the letter, but for the digits of when they were renewed;
 * and they come in the same order. So each is compared with the one that is due, and only what differs
 * is parsed. Parsing all of them would take many times as long, most of it for memory that is used once.
 * What was seen is never out of date, since equal texts say equal things.
 */
export class ItemReader {
  /** The items of the last whole read, in order. */
  #due: readonly Seen[] = [];
  /** Where each of them stands, by its sort key. */
  #places: ReadonlyMap<string, number> = new Map();
  /** Those of the read that is under way. */
  #seen: Seen[] = [];
  /** Where the one stands that should come next. */
  #place = 0;
  /** Whether the read has found nothing that was not due. */
  #isSame = true;

  /** A read of the whole table begins. One that was under way counts for nothing. */
  begin(): void {
    this.#seen = [];
    this.#place = 0;
    this.#isSame = true;
  }

  /**
   * Reads the next answer.
   *
   * @throws SyntaxError or TypeError where it is not DynamoDB's
   */
  page(text: string): Page {
    const scanned = this.#scan(text);
    const { Items = [], LastEvaluatedKey } = itemOf(JSON.parse(scanned?.rest ?? text));
    if (!Array.isArray(Items)) throw new TypeError("the Items are no list");
    return {
      items: scanned?.items ?? Items.map((item) => decode(itemOf(item))),
      next: LastEvaluatedKey === undefined ? undefined : itemOf(LastEvaluatedKey),
    };
  }

  /** All pages are read. The next read should find what this one has. */
  end(): void {
    const isSame = this.#isSame && this.#seen.length === this.#due.length;
    this.#due = this.#seen;
    if (isSame) return;
    this.#places = new Map(this.#due.map(({ id }, place) => [id, place]));
  }

  /**
   * The items, and the answer without them. Undefined where they are written in another way than
   * DynamoDB does it.
   */
  #scan(text: string): { readonly items: Decoded[]; readonly rest: string } | undefined {
    const start = text.indexOf(LIST) + LIST.length;
    if (start < LIST.length) return undefined;
    const items: Decoded[] = [];
    let at = start;
    while (text[at] !== "]") {
      if (items.length > 0) {
        if (text[at] !== ",") return undefined;
        at += 1;
      }
      let end = this.#expected(text, at, items);
      if (end === undefined) {
        end = itemEnd(text, at);
        const item = end === undefined ? undefined : parsed(text.slice(at, end));
        if (end === undefined || item === undefined) return undefined;
        this.#add(text.slice(at, end), decode(item), items);
      }
      at = end;
    }
    return { items, rest: text.slice(0, start) + text.slice(at) };
  }

  /** Takes the item at `at`, where it is the one that is due, and tells where it ends. */
  #expected(text: string, at: number, items: Decoded[]): number | undefined {
    const due = this.#due[this.#place];
    if (due === undefined || !text.startsWith(due.before, at)) return undefined;
    const numberAt = at + due.before.length;
    const numberEnd = text.indexOf('"', numberAt);
    const renewedAtMs = finite(text.slice(numberAt, numberEnd));
    if (renewedAtMs === undefined || !text.startsWith(due.after, numberEnd)) return undefined;
    if (due.decoded.renewedAtMs !== renewedAtMs) due.decoded = { ...due.decoded, renewedAtMs };
    items.push(due.decoded);
    this.#seen.push(due);
    this.#place += 1;
    return numberEnd + due.after.length;
  }

  /** Takes an item that had to be parsed, and expects what came behind it the last time. */
  #add(text: string, decoded: Decoded, items: Decoded[]): void {
    items.push(decoded);
    this.#isSame = false;
    const { id } = decoded;
    if (id === undefined) return;
    const place = this.#places.get(id);
    if (place !== undefined) this.#place = place + 1;
    const seen = seenOf(text, id, decoded);
    if (seen !== undefined) this.#seen.push(seen);
  }
}

/**
 * Where the item that begins at `at` ends, if it is written as DynamoDB does it. Whether it is shows
 * when what lies between is parsed: a list has just one division into parts that are all JSON.
 */
function itemEnd(text: string, at: number): number | undefined {
  const between = text.indexOf(BETWEEN_ITEMS, at);
  const end = between === -1 ? text.indexOf(LAST_ITEM_END, at) : between;
  return end === -1 ? undefined : end + 2;
}

function parsed(text: string): Item | undefined {
  try {
    return itemOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** What to compare an item with the next time; undefined where the digits are not plain to see. */
function seenOf(text: string, id: string, decoded: Decoded): Seen | undefined {
  // What is cut out of a string keeps all of that in memory, and this was cut out of a page.
  const own = Buffer.from(text).toString();
  const start = own.indexOf(RENEWED_AT) + RENEWED_AT.length;
  const end = own.indexOf('"', start);
  const isPlain =
    start === own.lastIndexOf(RENEWED_AT) + RENEWED_AT.length &&
    finite(own.slice(start, end)) === decoded.renewedAtMs;
  return isPlain ? { id, before: own.slice(0, start), after: own.slice(end), decoded } : undefined;
}
