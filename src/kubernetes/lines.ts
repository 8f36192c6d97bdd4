/** Splits bytes that come in pieces into lines, which are UTF-8. Holds what the unfinished line needs. */
export class LineSplitter {
  readonly #maxBytes: number;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in `chunk`, without their line feeds. Throws where one is over the limit. */
  *push(chunk: Uint8Array): Generator<string> {
    let rest = chunk;
    for (;;) {
      const end = rest.indexOf(LINE_FEED);
      this.#add(end < 0 ? rest : rest.subarray(0, end));
      if (end < 0) return;
      rest = rest.subarray(end + 1);
      yield this.take();
    }
  }

  /** What has come of a line that has not ended; it is forgotten. */
  take(): string {
    const text = Buffer.concat(this.#pieces).toString();
    this.#pieces = [];
    this.#bytes = 0;
    return text;
  }

  #add(piece: Uint8Array): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes)
      throw new RangeError(`a line is over ${this.#maxBytes} bytes`);
    if (piece.length > 0) this.#pieces.push(piece);
  }
}

const LINE_FEED = 0x0a;
