import type { Clock } from "./clock.ts";
import { limits } from "./limits.ts";

type FileSystem = typeof import("node:fs");

const GATHER_MS = 1;
const RETRY_MS = 20;
// Not by `Buffer`, whose first use is a twentieth of a start.
const encoder = new TextEncoder();

/**
 * Writes lines to a file descriptor without ever waiting for its reader: a thread of the pool does.
 * What waits is bounded; lines beyond that are dropped. Those of one millisecond are written together.
 * So the first requests don't wait for `node:fs`, a tenth of a start, which the first line loads.
 */
export class LineWriter {
  readonly #fd: number;
  readonly #clock: Clock;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #whenIdle: (() => void)[] = [];

  constructor(fd: number, clock: Clock) {
    this.#fd = fd;
    this.#clock = clock;
  }

  /** Takes a line, its line feed included, or drops it: then it returns false. */
  write(line: string): boolean {
    const bytes = encoder.encode(line);
    if (this.#waitingBytes + bytes.length > limits.logBytes) return false;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) {
      this.#isWriting = true;
      this.#clock.after(GATHER_MS, () => void this.#start());
    }
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

  async #start(): Promise<void> {
    this.#writeNext(await import("node:fs"));
  }

  #writeNext(fs: FileSystem): void {
    const batch = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#isWriting = batch.length > 0;
    if (this.#isWriting) {
      this.#writeRest(fs, batch);
      return;
    }
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #writeRest(fs: FileSystem, bytes: Uint8Array): void {
    fs.write(this.#fd, bytes, (error, written) => {
      // Somebody else made the pipe non-blocking, and it is full.
      if (error?.code === "EAGAIN") {
        this.#clock.after(RETRY_MS, () => this.#writeRest(fs, bytes));
        return;
      }
      // A reader that has gone away must not end the service; there is nowhere left to say it.
      const done = error === null ? written : bytes.length;
      this.#waitingBytes -= done;
      if (done < bytes.length) this.#writeRest(fs, bytes.subarray(done));
      else this.#writeNext(fs);
    });
  }
}
