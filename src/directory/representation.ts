/** A content coding that a list may be sent in (RFC 9110, section 8.4.1; zstd: RFC 8878). */
export type Coding = "identity" | "gzip" | "zstd";

const ENCODER = new TextEncoder();

/** The body of a list as it is sent: its bytes in each coding, and what they are known by. */
export class Representation {
  /** Names the content: equal for equal bodies, on every replica. */
  readonly hash: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The strong ETag of the body in each coding (RFC 9110, section 8.8.3). */
  readonly etags: Readonly<Record<Coding, string>>;
  readonly #bodies = new Map<Coding, Blob>();

  constructor(body: string) {
    this.bytes = ENCODER.encode(body);
    // 128 bits of it: no two bodies are ever met by chance, and the header stays short.
    this.hash = Bun.SHA256.hash(this.bytes, "hex").slice(0, 32);
    this.etags = {
      identity: `"${this.hash}"`,
      gzip: `"${this.hash}-gzip"`,
      zstd: `"${this.hash}-zstd"`,
    };
  }

  /**
   * The body in `coding`, made when it is first asked for. A `Blob` is shared by all responses that
   * are made of it, while each would copy an array: in time, and in memory until it is sent.
   */
  in(coding: Coding): Blob {
    let body = this.#bodies.get(coding);
    if (body === undefined) {
      body = new Blob([this.#coded(coding)]);
      this.#bodies.set(coding, body);
    }
    return body;
  }

  #coded(coding: Coding): Uint8Array<ArrayBuffer> {
    switch (coding) {
      case "identity":
        return this.bytes;
      case "gzip":
        return Bun.gzipSync(this.bytes, { level: 1 });
      case "zstd":
        // A copy: what Bun returns is a slice of a larger buffer.
        return new Uint8Array(Bun.zstdCompressSync(this.bytes, { level: 1 }));
    }
  }
}
