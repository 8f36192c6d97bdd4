import type { Clock } from "../runtime/clock.ts";
import { Cooldown } from "../runtime/cooldown.ts";
import { ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";

const JSON_TYPE = "application/json";
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Reads the bodies of requests, and holds no more of them at a time than the limits say. */
export class BodyReader {
  readonly #log: Log;
  readonly #cooldown: Cooldown;
  /** Of large bodies that are being received: what is held of them, or will be. */
  #largeBytes = 0;

  constructor(clock: Clock, log: Log) {
    this.#log = log;
    this.#cooldown = new Cooldown(clock);
  }

  /**
   * The whole body of a request that carries JSON, as text. What a client sends beyond the limit is
   * dropped as it comes.
   *
   * @throws ServiceError `unsupported-media-type`, `too-large`, `unavailable` where too much is being
   *   received already, or `invalid` where it broke off or is not UTF-8
   */
  async readJson(request: Request): Promise<string> {
    requireJson(request.headers);
    let bytes: Uint8Array;
    try {
      bytes = await this.#readBytes(request);
    } catch (error) {
      if (!request.signal.aborted) throw error;
      throw new ServiceError("invalid", "the request broke off");
    }
    try {
      return UTF_8.decode(bytes);
    } catch {
      throw new ServiceError("invalid", "the body is not valid UTF-8");
    }
  }

  #readBytes(request: Request): Promise<Uint8Array> {
    const header = request.headers.get("content-length");
    // Reading as a stream costs a third of the throughput, so only where the length is not known.
    if (header === null) return this.#readStream(request);
    const length = Number(header);
    if (length > limits.bodyBytes) throw tooLarge();
    return length > limits.smallBodyBytes ? this.#readLarge(request, length) : request.bytes();
  }

  async #readLarge(request: Request, length: number): Promise<Uint8Array> {
    this.#hold(length);
    try {
      return await request.bytes();
    } finally {
      this.#largeBytes -= length;
    }
  }

  async #readStream(request: Request): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    let held = 0;
    try {
      // Leaving the loop cancels the stream.
      for await (const chunk of request.body ?? []) {
        bytes += chunk.length;
        if (bytes > limits.bodyBytes) throw tooLarge();
        if (bytes > limits.smallBodyBytes) {
          this.#hold(bytes - held);
          held = bytes;
        }
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    } finally {
      this.#largeBytes -= held;
    }
  }

  #hold(bytes: number): void {
    if (this.#largeBytes + bytes > limits.largeBodiesBytes) {
      if (this.#cooldown.restart()) {
        this.#log.warn(
          "large bodies are refused: too much is being received; look who sends them",
          {
            limit_bytes: limits.largeBodiesBytes,
          },
        );
      }
      throw new ServiceError(
        "unavailable",
        `the service is receiving its limit of ${limits.largeBodiesBytes} bytes in large bodies; try again`,
      );
    }
    this.#largeBytes += bytes;
  }
}

function requireJson(headers: Headers): void {
  const type = headers.get("content-type");
  if (type !== JSON_TYPE && type?.split(";", 1)[0]?.trim().toLowerCase() !== JSON_TYPE) {
    throw new ServiceError("unsupported-media-type", `Content-Type must be ${JSON_TYPE}`);
  }
  const coding = headers.get("content-encoding");
  if (coding !== null && coding.toLowerCase() !== "identity") {
    throw new ServiceError("unsupported-media-type", "Content-Encoding must be left out");
  }
}

function tooLarge(): ServiceError {
  return new ServiceError("too-large", `the body is over ${limits.bodyBytes} bytes`);
}
