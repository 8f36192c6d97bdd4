import type { Clock } from "../runtime/clock.ts";

/**
 * Why a watch, or the list before it, ended:
 *
 * - `end`: the API server ended it in good order
 * - `expired`: the resource version or the continue token was too old
 * - `denied`: the API server refuses the credentials, or what they may do
 * - `silent`: nothing was heard on it for longer than its time-out
 * - `error`: anything else, no answer at all included
 */
export type EndReason = "end" | "expired" | "denied" | "silent" | "error";

export interface Ending {
  readonly reason: EndReason;
  readonly message: string;
  /** How long a watch was established; undefined where none was. */
  readonly lastedMs: number | undefined;
}

/**
 * A watch that ends sooner is a failure, or a server that ends each at once would be stormed. Nothing
 * may have been heard on it.
 */
export const SHORT_WATCH_MS = 1000;
/**
 * A watch that lasted so long shows that the server is well: what fails next is a first failure again.
 * Were every watch cut just then, and a list of a few pages made after each, that would still be less
 * than two requests a second; and proxies that cut idle connections mostly wait longer.
 */
const HEALTHY_WATCH_MS = 5000;
/** The shortest and the longest wait after a failure. */
const BACKOFF_MS = { least: 800, most: 30_000 } as const;

/** Decides how soon to ask the API server again, so that no fault of it leads to a storm of requests. */
export class Pace {
  readonly #clock: Clock;
  #backoffMs = 2 * BACKOFF_MS.least;
  /** Whether a 410 has come since the last healthy watch. */
  #hasExpired = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * How long to wait after an ending, in milliseconds. What may happen at any time, and is mended by
   * asking again, costs no wait: a time-out, a silence that was long enough, a first 410.
   */
  waitMs({ reason, lastedMs = 0 }: Ending): number {
    if (lastedMs >= HEALTHY_WATCH_MS) {
      this.#backoffMs = 2 * BACKOFF_MS.least;
      this.#hasExpired = false;
    }
    if (reason === "silent") return 0;
    if (reason === "end" && lastedMs >= SHORT_WATCH_MS) return 0;
    if (reason === "expired" && !this.#hasExpired) {
      this.#hasExpired = true;
      return 0;
    }
    return this.#nextBackoffMs();
  }

  /** Twice as long each time, and spread by half, so that clients that failed together come apart. */
  #nextBackoffMs(): number {
    const upToMs = this.#backoffMs;
    this.#backoffMs = Math.min(2 * upToMs, BACKOFF_MS.most);
    return upToMs * (0.5 + 0.5 * this.#clock.random());
  }
}
