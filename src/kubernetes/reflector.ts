import { type Cancel, type Clock, DeadlineError } from "../runtime/clock.ts";
import { Cooldown } from "../runtime/cooldown.ts";
import { messageOf } from "../runtime/errors.ts";
import type { Log } from "../runtime/log.ts";
import { type Ending, type EndReason, Pace, SHORT_WATCH_MS } from "./pace.ts";
import { ApiError, type EndpointSlice, type SliceApi, type WatchEvent } from "./slice-api.ts";
import { Watchdog } from "./watchdog.ts";

/** Hears what the slices are. Its methods are quick and don't throw. */
export interface SliceSink {
  /** These are all there are, in place of whatever was known. */
  replace(slices: readonly EndpointSlice[]): void;
  /** A slice is new or has changed; the sink tells which, by namespace and name. */
  put(slice: EndpointSlice): void;
  /** A slice is gone, known or not. What is given is how it was last. */
  remove(slice: EndpointSlice): void;
}

export interface WatchFacts {
  /** When the API server last told something of the slices, in milliseconds since 1970. */
  readonly heardAtWallMs: number | undefined;
  /** How often a watch, or the list before it, has ended and was begun again. */
  readonly restarts: Readonly<Record<EndReason, number>>;
}

export interface ReflectorOptions {
  readonly api: SliceApi;
  readonly sink: SliceSink;
  readonly clock: Clock;
  readonly log: Log;
}

/** As many as client-go asks for: a page is some hundred kilobytes, and 10,000 slices are 20 pages. */
const PAGE_SLICES = 500;
/** A page that has not come by then never will: the connection or the server hangs. */
const PAGE_MS = 30_000;
/**
 * How soon a watch has to be taken on. An API server that is busy keeps a request waiting for 15 s
 * (a quarter of its `--request-timeout`), and there has to be time for another before the slices no
 * longer count as current.
 */
const WATCH_START_MS = 20_000;
/** How long the API server is asked to let a watch go on; spread, so that not all end together. */
const WATCH_SECS = { least: 240, most: 300 } as const;
/** How much later than the watch's time-out its end may come to be heard. */
const SILENCE_MARGIN_MS = 5000;
/** How long the slices count as current without a watch. */
const CURRENT_MS = 30_000;

/**
 * Keeps a sink in step with the slices of an API server, as a client-go reflector does: lists them
 * all, then watches what changes from the list's resource version on, and begins again where that
 * breaks off. Until it is stopped it tries for ever, whatever the fault.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #pace: Pace;
  /** One each, so that what is new is said at once. */
  readonly #cooldowns: Readonly<Record<EndReason, Cooldown>>;
  readonly #synced = Promise.withResolvers<void>();
  #isSynced = false;
  /** The last one seen; undefined where only a list can tell. */
  #resourceVersion: string | undefined;
  /** When the watch that is going on was established, on the monotonic clock. */
  #establishedAtMs: number | undefined;
  /** Since when there has been no watch that lasted, where there is none. */
  #unwatchedSinceMs = 0;
  #lastError: string | undefined;
  #isLossLogged = false;
  #heardAtWallMs: number | undefined;
  readonly #restarts: Record<EndReason, number> = {
    end: 0,
    expired: 0,
    denied: 0,
    silent: 0,
    error: 0,
  };
  #isStopped = false;
  #watchdog: Watchdog | undefined;
  #cancelWait: Cancel = () => {};

  constructor(options: ReflectorOptions) {
    this.#options = options;
    const { clock } = options;
    this.#pace = new Pace(clock);
    this.#cooldowns = {
      end: new Cooldown(clock),
      expired: new Cooldown(clock),
      denied: new Cooldown(clock),
      silent: new Cooldown(clock),
      error: new Cooldown(clock),
    };
  }

  /**
   * Begins, and resolves once the sink has the first whole list: never where it is stopped before.
   * To be called once.
   */
  start(): Promise<void> {
    this.#unwatchedSinceMs = this.#options.clock.monotonicMs();
    void this.#run();
    return this.#synced.promise;
  }

  /** Drops what is going on. The sink hears nothing more, and nothing more is asked for. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelWait();
    this.#watchdog?.abort(new Error("stopped"));
  }

  /** Whether the sink has had a whole list. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /**
   * Whether the sink is in step: a watch is established, or was not for at most 30 s. A watch that ends
   * within a second is none: a server may take each on and end it at once, and tell nothing for ever.
   */
  isCurrent(): boolean {
    if (!this.#isSynced) return false;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#unwatchedSinceMs <= CURRENT_MS) return true;
    return nowMs - (this.#establishedAtMs ?? nowMs) >= SHORT_WATCH_MS;
  }

  /** Why the sink has had no whole list yet; undefined once it has. */
  unreadyReason(): string | undefined {
    if (this.#isSynced) return undefined;
    return `the slices have not been read yet${this.#because()}`;
  }

  /** Why the sink is not in step; undefined where it is. */
  outdatedReason(): string | undefined {
    if (this.isCurrent()) return undefined;
    const unwatchedMs = this.#options.clock.monotonicMs() - this.#unwatchedSinceMs;
    const secs = Math.floor(unwatchedMs / 1000);
    return (
      this.unreadyReason() ?? `the slices have not been watched for ${secs} s${this.#because()}`
    );
  }

  /** How it has gone so far. */
  get watch(): WatchFacts {
    return { heardAtWallMs: this.#heardAtWallMs, restarts: this.#restarts };
  }

  #because(): string {
    return this.#lastError === undefined ? "" : `: ${this.#lastError}`;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const ending =
        this.#resourceVersion === undefined
          ? await this.#list()
          : await this.#watch(this.#resourceVersion);
      if (this.#isStopped) return;
      if (ending === undefined) continue;
      this.#restarts[ending.reason] += 1;
      const waitMs = this.#pace.waitMs(ending);
      this.#note(ending, waitMs);
      if (waitMs > 0) await this.#wait(waitMs);
      // What was not watched for long is listed again before it counts as current again; and a version
      // that no watch begins from may be one that this server never gave.
      if (ending.reason === "expired" || !this.isCurrent()) this.#resourceVersion = undefined;
    }
  }

  /** Gives the sink a whole list, or says why it could not. */
  async #list(): Promise<Ending | undefined> {
    const watchdog = this.#newWatchdog();
    try {
      const list = await watchdog.guard((signal) => this.#readPages(watchdog, signal));
      if (this.#isStopped) return undefined;
      this.#options.sink.replace(list.slices);
      this.#heardAtWallMs = this.#options.clock.wallMs();
      this.#resourceVersion = list.resourceVersion;
      if (!this.#isSynced) this.#noteSynced(list.slices.length);
      return undefined;
    } catch (error) {
      return this.#endOf(watchdog, error);
    }
  }

  async #readPages(watchdog: Watchdog, signal: AbortSignal) {
    const slices: EndpointSlice[] = [];
    let continueToken: string | undefined;
    for (;;) {
      watchdog.expect(PAGE_MS);
      const page = await this.#options.api.list({ limit: PAGE_SLICES, continueToken }, signal);
      signal.throwIfAborted();
      for (const slice of page.slices) slices.push(slice);
      continueToken = page.continueToken;
      if (continueToken === undefined) return { slices, resourceVersion: page.resourceVersion };
    }
  }

  #noteSynced(slices: number): void {
    this.#isSynced = true;
    this.#isLossLogged = false;
    this.#options.log.info("the slices are read", { slices });
    this.#synced.resolve();
  }

  /** Tells the sink what changes, until that ends. */
  async #watch(resourceVersion: string): Promise<Ending> {
    const { api, clock } = this.#options;
    const { least, most } = WATCH_SECS;
    const timeoutSecs = least + Math.floor((most - least + 1) * clock.random());
    const watchdog = this.#newWatchdog();
    try {
      await watchdog.guard(async (signal) => {
        watchdog.expect(WATCH_START_MS);
        const events = await api.watch({ resourceVersion, timeoutSecs }, signal);
        signal.throwIfAborted();
        this.#noteEstablished();
        watchdog.expect(timeoutSecs * 1000 + SILENCE_MARGIN_MS);
        for await (const event of events) {
          signal.throwIfAborted();
          watchdog.heard();
          this.#apply(event);
        }
      });
      return this.#endOf(watchdog, undefined);
    } catch (error) {
      return this.#endOf(watchdog, error);
    }
  }

  #noteEstablished(): void {
    this.#establishedAtMs = this.#options.clock.monotonicMs();
    if (this.#isLossLogged) this.#options.log.info("the slices are watched again");
    this.#isLossLogged = false;
  }

  #apply(event: WatchEvent): void {
    const { sink, clock } = this.#options;
    this.#heardAtWallMs = clock.wallMs();
    if (event.type === "BOOKMARK") {
      this.#resourceVersion = event.resourceVersion;
      return;
    }
    if (event.type === "DELETED") sink.remove(event.slice);
    else sink.put(event.slice);
    this.#resourceVersion = event.slice.metadata.resourceVersion;
  }

  /** How a list or a watch ended; a watch that ended in good order has thrown nothing. */
  #endOf(watchdog: Watchdog, thrown: unknown): Ending {
    const nowMs = this.#options.clock.monotonicMs();
    const establishedAtMs = this.#establishedAtMs;
    const reason = reasonOf(thrown, establishedAtMs !== undefined);
    if (establishedAtMs === undefined) {
      return { reason, message: messageOf(thrown), lastedMs: undefined };
    }
    this.#establishedAtMs = undefined;
    const lastedMs = nowMs - establishedAtMs;
    if (lastedMs >= SHORT_WATCH_MS) {
      // One that was silent may have been lost at any time since it was last heard.
      this.#unwatchedSinceMs = reason === "silent" ? watchdog.heardAtMs : nowMs;
    }
    const message =
      thrown === undefined
        ? `the API server ended the watch after ${lastedMs / 1000} s`
        : messageOf(thrown);
    return { reason, message, lastedMs };
  }

  /** Logs an ending, where it is a fault and the log has not just said so. */
  #note({ reason: fault, message: reason }: Ending, waitMs: number): void {
    const { log } = this.#options;
    if (waitMs === 0 && fault !== "silent") {
      log.debug("asking the API server again", { fault, reason });
      return;
    }
    this.#lastError = reason;
    if (!this.#cooldowns[fault].restart()) return;
    this.#isLossLogged = true;
    const text = this.#isSynced
      ? "the slices can't be watched; the last state is served"
      : "the slices can't be read yet; trying again";
    log.warn(text, { fault, reason });
  }

  #newWatchdog(): Watchdog {
    this.#watchdog = new Watchdog(this.#options.clock);
    return this.#watchdog;
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#cancelWait = this.#options.clock.after(ms, resolve);
    });
  }
}

function reasonOf(thrown: unknown, wasEstablished: boolean): EndReason {
  if (thrown === undefined) return "end";
  if (thrown instanceof ApiError) return thrown.fault;
  return thrown instanceof DeadlineError && wasEstablished ? "silent" : "error";
}
