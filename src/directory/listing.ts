import { compareIds } from "../pools/pool.ts";
import { Representation } from "./representation.ts";

interface Entry {
  /** The pool's sort key. */
  readonly id: string;
  json: string;
}

/** A stretch of the list. */
interface Chunk {
  /** In order, and never none unless it is the only chunk. */
  readonly entries: Entry[];
  /** Undefined once an entry has changed, until it is asked for. */
  made: MadeChunk | undefined;
}

interface MadeChunk {
  /** What it says in the body, with a comma before each entry. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The SHA-256 of what each entry says, one after the other. */
  readonly digests: Uint8Array;
}

/** A chunk of more entries is divided, and neighbours of together no more than half as many united. */
const MOST_ENTRIES = 128;
const DIGEST_BYTES = 32;

const ENCODER = new TextEncoder();
const BEGINNING = ENCODER.encode('{"pools":[');

/**
 * The listed pools, in order, and the bytes of `GET /pools`. A change costs one search; the bytes are
 * made anew when they are next asked for, once for any number of changes, and only those of the chunks
 * that have changed.
 */
export class Listing {
  readonly #show: (json: string) => string;
  readonly #chunks: Chunk[] = [{ entries: [], made: undefined }];
  #size = 0;
  #representation: Representation | undefined;
  #complete = false;

  /**
   * `show` makes what is listed of what was put. It is called each time that the bytes are made, so
   * that what was put may be a string that somebody else keeps, and takes no memory of its own.
   */
  constructor(show = (json: string) => json) {
    this.#show = show;
  }

  /** Lists a pool, by its sort key, as `json`, in place of what was listed of it. */
  put(id: string, json: string): void {
    const { chunk, chunkPlace, place, entry } = this.#find(id);
    if (entry?.json === json) return;
    this.#changed(chunk);
    if (entry !== undefined) {
      entry.json = json;
      return;
    }
    chunk.entries.splice(place, 0, { id, json });
    this.#size += 1;
    if (chunk.entries.length <= MOST_ENTRIES) return;
    const entries = chunk.entries.splice(MOST_ENTRIES / 2);
    this.#chunks.splice(chunkPlace + 1, 0, { entries, made: undefined });
  }

  /** Takes a pool off the list; harmless where it is not on it. */
  remove(id: string): void {
    const { chunk, chunkPlace, place, entry } = this.#find(id);
    if (entry === undefined) return;
    this.#changed(chunk);
    chunk.entries.splice(place, 1);
    this.#size -= 1;
    const next = this.#chunks[chunkPlace + 1];
    if (next !== undefined && chunk.entries.length + next.entries.length <= MOST_ENTRIES / 2) {
      chunk.entries.push(...next.entries);
      this.#chunks.splice(chunkPlace + 1, 1);
    } else if (chunk.entries.length === 0 && this.#chunks.length > 1) {
      this.#chunks.splice(chunkPlace, 1);
    }
  }

  /** How many pools are listed. */
  get size(): number {
    return this.#size;
  }

  /** The body of `GET /pools`, the same object until its content changes. */
  representation(complete: boolean): Representation {
    if (this.#representation === undefined || this.#complete !== complete) {
      this.#representation = this.#make(complete);
      this.#complete = complete;
    }
    return this.#representation;
  }

  /**
   * The hash is one of the entries' hashes, so that it costs little where few have changed; it does
   * not depend on how the list is divided into chunks.
   */
  #make(complete: boolean): Representation {
    const end = ENCODER.encode(`],"complete":${complete}}`);
    const hash = new Bun.SHA256();
    const parts = [BEGINNING];
    for (const chunk of this.#chunks) {
      chunk.made ??= this.#makeChunk(chunk.entries);
      const { bytes, digests } = chunk.made;
      // No comma before the first entry of all.
      parts.push(parts.length === 1 ? bytes.subarray(1) : bytes);
      hash.update(digests);
    }
    parts.push(end);
    return new Representation({ parts, hash: hash.update(end).digest("hex") });
  }

  #makeChunk(entries: readonly Entry[]): MadeChunk {
    const texts = entries.map(({ json }) => this.#show(json));
    const digests = new Uint8Array(entries.length * DIGEST_BYTES);
    for (const [place, text] of texts.entries()) {
      const start = place * DIGEST_BYTES;
      Bun.SHA256.hash(text, digests.subarray(start, start + DIGEST_BYTES));
    }
    return { bytes: ENCODER.encode(texts.map((text) => `,${text}`).join("")), digests };
  }

  #changed(chunk: Chunk): void {
    chunk.made = undefined;
    this.#representation = undefined;
  }

  /** What is listed of a pool, and where it stands, or would stand, in the order of the list. */
  #find(id: string) {
    // The last chunk that does not begin behind it.
    const isBehind = ({ entries: [first] }: Chunk) =>
      first !== undefined && compareIds(first.id, id) > 0;
    const chunkPlace = Math.max(0, firstPlace(this.#chunks, isBehind) - 1);
    const chunk = this.#chunks[chunkPlace];
    if (chunk === undefined) throw new Error("a list always has a chunk");
    const place = firstPlace(chunk.entries, (entry) => compareIds(entry.id, id) >= 0);
    const entry = chunk.entries[place];
    const isThere = entry?.id === id;
    return { chunk, chunkPlace, place, entry: isThere ? entry : undefined };
  }
}

/** Where the first one stands that `holds` says yes of, if it says so of all behind it as well. */
function firstPlace<T>(sorted: readonly T[], holds: (item: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = sorted[middle];
    if (item !== undefined && !holds(item)) low = middle + 1;
    else high = middle;
  }
  return low;
}
