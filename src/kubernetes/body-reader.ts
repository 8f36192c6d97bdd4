/** Reads the body of a response piece by piece, for as long as a signal lets it. */
export class BodyReader {
  readonly #reader: Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel"> | undefined;
  readonly #signal: AbortSignal;
  readonly #stop = () => this.stop();
  #isStopped = false;

  constructor(response: Response, signal: AbortSignal) {
    this.#reader = response.body?.getReader();
    this.#signal = signal;
    signal.addEventListener("abort", this.#stop, { once: true });
    if (signal.aborted) this.stop();
  }

  /** The next piece; undefined at the end. Rejects with the signal's reason once that is aborted. */
  async read(): Promise<Uint8Array | undefined> {
    try {
      const piece = await this.#reader?.read();
      this.#signal.throwIfAborted();
      return piece?.value;
    } catch (error) {
      this.#signal.throwIfAborted();
      throw error;
    }
  }

  /** All of it, at most `maxBytes`; what is over is not read. */
  async text(maxBytes: number): Promise<{ readonly text: string; readonly isCut: boolean }> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    try {
      for (let piece = await this.read(); piece !== undefined; piece = await this.read()) {
        pieces.push(piece);
        bytes += piece.length;
        if (bytes > maxBytes) break;
      }
    } finally {
      this.stop();
    }
    const text = Buffer.concat(pieces).toString("utf8", 0, maxBytes);
    return { text, isCut: bytes > maxBytes };
  }

  /** Drops the connection where the body has not ended; reading it then ends as if it had. */
  stop(): void {
    this.#signal.removeEventListener("abort", this.#stop);
    this.#isStopped = true;
    // Aborting the request instead would do, but has leaked memory in Bun. What comes of it is nobody's
    // concern any more.
    this.#reader?.cancel().catch(() => {});
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }
}
