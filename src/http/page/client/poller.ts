import type { Explanation } from "./explanation.ts";

/** How long after an answer the next one is asked for. */
const PAUSE_MS = 5_000;
/** A service that takes long to answer is asked less often: this many times what it took. */
const PAUSE_PER_MS = 10;
const LONGEST_PAUSE_MS = 60_000;
const TIMEOUT_MS = 10_000;
/** Longest piece of an error's text that is shown. */
const REASON_CHARS = 500;

export interface Listener {
  answered(explanation: Explanation): void;
  failed(reason: string): void;
}

/** Asks for the explanation again and again, never twice at once, while the page is to be seen. */
export class Poller {
  readonly #listener: Listener;
  #isPaused = false;
  #isAsking = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  start(): void {
    document.addEventListener("visibilitychange", () => this.#goOn());
    this.#goOn();
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  set isPaused(isPaused: boolean) {
    this.#isPaused = isPaused;
    this.#goOn();
  }

  #goOn(): void {
    clearTimeout(this.#timer);
    if (this.#isWanted() && !this.#isAsking) void this.#ask();
  }

  #isWanted(): boolean {
    return !this.#isPaused && document.visibilityState === "visible";
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const startedAtMs = performance.now();
    const answer = await getExplanation();
    const tookMs = performance.now() - startedAtMs;
    this.#isAsking = false;
    let pauseMs = PAUSE_MS;
    if (typeof answer === "string") {
      this.#listener.failed(answer);
    } else {
      this.#listener.answered(answer);
      pauseMs = Math.min(Math.max(PAUSE_MS, tookMs * PAUSE_PER_MS), LONGEST_PAUSE_MS);
    }
    if (this.#isWanted()) this.#timer = setTimeout(() => this.#goOn(), pauseMs);
  }
}

/** The explanation, or why there is none. */
async function getExplanation(): Promise<Explanation | string> {
  try {
    // Relative, so that the page works behind a proxy that serves it under a path.
    const response = await fetch("explain", {
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    if (!response.ok) return `it answers ${response.status} ${text.slice(0, REASON_CHARS)}`;
    // The service that served this page gives its own version of the explanation.
    return JSON.parse(text) as Explanation;
  } catch (error) {
    if (error instanceof SyntaxError) return "what answers is not the service: it sends no JSON";
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    return isLate ? `no answer within ${TIMEOUT_MS / 1000} s` : "no connection";
  }
}
