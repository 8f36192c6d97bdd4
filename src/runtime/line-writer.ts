import { write } from "node:fs";
import type { Clock } from "./clock.ts";
import { limits } from "./limits.ts";

const RETRY_MS = 20;

/**
 * Writes lines to a file descriptor without ever waiting for its reader: a thread of the pool does.
 * What waits is bounded; lines beyond that are dropped.
 */
export class LineWriter {
  readonly #fd: number;
  readonly #clock: Clock;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #whenIdle: (() => void)[] = [];

  constructor(fd: number, clock: Clock) {
    this.#fd = fd;
    this.#clock = clock;
  }

  /** Takes a line, its line feed included, or drops it: then it returns false. */
  write(line: string): boolean {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > limits.logBytes) return false;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#writeNext();
    return true;
  }

  /** Resolves once all lines are written, or after a second where nobody reads them. */
  async flush(): Promise<void> {
    if (!this.#isWriting) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
      this.#clock.after(limits.logFlushMs, resolve);
    });
  }

  #writeNext(): void {
    const batch = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#isWriting = batch.length > 0;
    if (this.#isWriting) {
      this.#writeRest(batch);
      return;
    }
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #writeRest(bytes: Buffer): void {
    write(this.#fd, bytes, (error, written) => {
      // Somebody else made the pipe non-blocking, and it is full.
      if (error?.code === "EAGAIN") {
        this.#clock.after(RETRY_MS, () => this.#writeRest(bytes));
        return;
      }
      // A reader that has gone away must not end the service; there is nowhere left to say it.
      const done = error === null ? written : bytes.length;
      this.#waitingBytes -= done;
      if (done < bytes.length) this.#writeRest(bytes.subarray(done));
      else this.#writeNext();
    });
  }
}
