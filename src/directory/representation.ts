/** A content coding that a list may be sent in (RFC 9110, section 8.4.1; zstd: RFC 8878). */
export type Coding = "identity" | "gzip" | "zstd";

type Bytes = Uint8Array<ArrayBuffer>;

const ENCODER = new TextEncoder();

/** A body in parts, which stay as they are, and a hash that is equal for equal bodies. */
export interface Parts {
  readonly parts: readonly Bytes[];
  /** In hexadecimal digits. */
  readonly hash: string;
}

/** The body of a list as it is sent: its bytes in each coding, and what they are known by. */
export class Representation {
  /** Names the content: equal for equal bodies, on every replica. */
  readonly hash: string;
  /** How many bytes it takes in no coding. */
  readonly size: number;
  /** The strong ETag of the body in each coding (RFC 9110, section 8.8.3). */
  readonly etags: Readonly<Record<Coding, string>>;
  readonly #parts: readonly Bytes[];
  readonly #bodies = new Map<Coding, Blob>();

  constructor(body: string | Parts) {
    const { parts, hash } = typeof body === "string" ? whole(body) : body;
    this.#parts = parts;
    this.size = parts.reduce((bytes, part) => bytes + part.length, 0);
    // 128 bits of it: no two bodies are ever met by chance, and the header stays short.
    this.hash = hash.slice(0, 32);
    this.etags = {
      identity: `"${this.hash}"`,
      gzip: `"${this.hash}-gzip"`,
      zstd: `"${this.hash}-zstd"`,
    };
  }

  get bytes(): Bytes {
    return join(this.#parts, new Uint8Array(this.size));
  }

  /**
   * The body in `coding`, made when it is first asked for. A `Blob` is shared by all responses that
   * are made of it, while each would copy an array: in time, and in memory until it is sent.
   */
  in(coding: Coding): Blob {
    let body = this.#bodies.get(coding);
    if (body === undefined) {
      body = new Blob(coding === "identity" ? [...this.#parts] : [this.#coded(coding)]);
      this.#bodies.set(coding, body);
    }
    return body;
  }

  #coded(coding: "gzip" | "zstd"): Bytes {
    const bytes = join(this.#parts, scratchOf(this.size));
    return coding === "gzip"
      ? Bun.gzipSync(bytes, { level: 1 })
      : // A copy: what Bun returns is a slice of a larger buffer.
        new Uint8Array(Bun.zstdCompressSync(bytes, { level: 1 }));
  }
}

function whole(body: string): Parts {
  const bytes = ENCODER.encode(body);
  return { parts: [bytes], hash: Bun.SHA256.hash(bytes, "hex") };
}

function join(parts: readonly Bytes[], into: Bytes): Bytes {
  let at = 0;
  for (const part of parts) {
    into.set(part, at);
    at += part.length;
  }
  return into;
}

let scratch: Bytes = new Uint8Array();

/**
 * Room for so many bytes, until somebody else asks for some. A long list that changes often would
 * otherwise take new memory each time, which costs as much as to compress it.
 */
function scratchOf(size: number): Bytes {
  // With room to grow, or most changes would take new memory after all.
  if (scratch.length < size || scratch.length > 4 * size) scratch = new Uint8Array(size * 1.25);
  return scratch.subarray(0, size);
}
