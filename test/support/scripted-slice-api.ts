import {
  ApiError,
  type EndpointSlice,
  type SliceApi,
  type SlicePage,
  type WatchEvent,
} from "../../src/kubernetes/slice-api.ts";
import type { Cancel, Clock } from "../../src/runtime/clock.ts";

/** A request, as it was asked. */
export interface ApiRequest {
  readonly verb: "list" | "watch";
  readonly atMs: number;
  readonly signal: AbortSignal;
  /** What a list goes on from. */
  readonly continueToken?: string | undefined;
  readonly limit?: number;
  /** What a watch goes on from. */
  readonly resourceVersion?: string;
  readonly timeoutSecs?: number;
}

/** What becomes of a request; what is left out is as it is with a server that is well. */
export interface Script {
  /** How long the answer takes; for ever, where that is infinite. */
  readonly answerAfterMs?: number;
  /** What the answer is in place of a good one. */
  readonly refusal?: Error;
  /** How long a watch goes on once it is established. */
  readonly lastsMs?: number;
  /** How it ends then: in good order, with an error, or by sending nothing any more. */
  readonly ending?: "end" | "silence" | Error;
}

/** So many requests at one moment are a storm that would never end. */
const STORM = 1000;

/** A server's slices in memory, and what becomes of each request to it as a test says. */
export class ScriptedSliceApi implements SliceApi {
  readonly requests: ApiRequest[] = [];
  readonly slices = new Map<string, EndpointSlice>();
  /** Asked about each request. */
  script: (request: ApiRequest) => Script | undefined = () => undefined;
  /** Whether requests and streams end when their signal says so. */
  heedsSignals = true;
  /** How often each watch is told the present version, as Kubernetes does about once a minute. */
  bookmarkEveryMs = 60_000;
  readonly #clock: Clock;
  readonly #streams = new Set<Stream>();
  /** What has happened, each with the version that it made. */
  #history: { readonly version: string; readonly event: WatchEvent | undefined }[] = [];
  readonly #lists = new Map<string, SlicePage>();
  #changes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#record(undefined);
  }

  /** The version of the last change. */
  get version(): string {
    return this.#history.at(-1)?.version ?? "";
  }

  /** Adds a slice, or changes it. */
  put(name: string): void {
    const type = this.slices.has(name) ? "MODIFIED" : "ADDED";
    const slice = this.#record((version) => ({ type, slice: makeSlice(name, version) }));
    if (slice !== undefined) this.slices.set(name, slice);
  }

  remove(name: string): void {
    if (!this.slices.delete(name)) return;
    this.#record((version) => ({ type: "DELETED", slice: makeSlice(name, version) }));
  }

  /** Tells all watches the present version, which a change of something else has made. */
  bookmark(): void {
    this.#record(undefined);
    for (const stream of this.#streams) this.#sendBookmark(stream);
  }

  /** Forgets what led to the present state, and the lists that are under way. */
  compact(): void {
    this.#history = this.#history.slice(-1);
    this.#lists.clear();
  }

  /** Ends all watches as `ending` says. */
  endWatches(ending: Exclude<Script["ending"], undefined>): void {
    for (const stream of this.#streams) stream.close(ending);
  }

  get openWatches(): number {
    return this.#streams.size;
  }

  async list(
    { limit, continueToken }: Parameters<SliceApi["list"]>[0],
    signal: AbortSignal,
  ): Promise<SlicePage> {
    await this.#answer({ verb: "list", limit, continueToken, ...this.#common(signal) });
    const rest =
      continueToken === undefined
        ? { slices: [...this.slices.values()], resourceVersion: this.version }
        : this.#lists.get(continueToken);
    if (rest === undefined) throw new ApiError("expired", "the continue token is too old");
    const page = { resourceVersion: rest.resourceVersion, slices: rest.slices.slice(0, limit) };
    if (rest.slices.length <= limit) return { ...page, continueToken: undefined };
    const next = `after ${limit} of ${rest.slices.length} at ${rest.resourceVersion}`;
    this.#lists.set(next, { ...rest, slices: rest.slices.slice(limit), continueToken: undefined });
    return { ...page, continueToken: next };
  }

  async watch(
    { resourceVersion, timeoutSecs }: Parameters<SliceApi["watch"]>[0],
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent>> {
    const script = await this.#answer({
      verb: "watch",
      resourceVersion,
      timeoutSecs,
      ...this.#common(signal),
    });
    const from = this.#history.findIndex(({ version }) => version === resourceVersion);
    if (from < 0) throw new ApiError("expired", "the resource version is too old");
    const stream = new Stream(signal, this.heedsSignals, () => this.#streams.delete(stream));
    this.#streams.add(stream);
    for (const { event } of this.#history.slice(from + 1)) if (event) stream.send(event);
    const { lastsMs = timeoutSecs * 1000, ending = "end" } = script ?? {};
    stream.timers.push(
      this.#clock.every(this.bookmarkEveryMs, () => this.#sendBookmark(stream)),
      this.#clock.after(lastsMs, () => stream.close(ending)),
    );
    return stream;
  }

  #common(signal: AbortSignal) {
    return { signal, atMs: this.#clock.monotonicMs() };
  }

  #sendBookmark(stream: Stream): void {
    stream.send({ type: "BOOKMARK", resourceVersion: this.version });
  }

  async #answer(request: ApiRequest): Promise<Script | undefined> {
    this.requests.push(request);
    if (this.requests.at(-STORM)?.atMs === request.atMs) throw new Error("a storm");
    const script = this.script(request);
    const { answerAfterMs = 0, refusal } = script ?? {};
    if (answerAfterMs > 0) await this.#delay(answerAfterMs, request.signal);
    if (this.heedsSignals) request.signal.throwIfAborted();
    if (refusal !== undefined) throw refusal;
    return script;
  }

  #delay(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = ms === Number.POSITIVE_INFINITY ? () => {} : this.#clock.after(ms, resolve);
      if (!this.heedsSignals) return;
      signal.addEventListener("abort", () => {
        cancel();
        reject(signal.reason);
      });
    });
  }

  /** Makes a version that says nothing of its place among the others, and tells the watches of it. */
  #record(eventOf: ((version: string) => SliceEvent) | undefined): EndpointSlice | undefined {
    this.#changes += 1;
    const version = String((this.#changes * 7919) % 1_000_003);
    const event = eventOf?.(version);
    this.#history.push({ version, event });
    if (event === undefined) return undefined;
    for (const stream of this.#streams) stream.send(event);
    return event.slice;
  }
}

type SliceEvent = Exclude<WatchEvent, { type: "BOOKMARK" }>;

export function makeSlice(name: string, resourceVersion: string): EndpointSlice {
  return { metadata: { name, namespace: "dynamo", resourceVersion }, addressType: "IPv4" };
}

/** A watch's events. What was sent before its end is still read. */
class Stream implements AsyncIterable<WatchEvent> {
  readonly timers: Cancel[] = [];
  readonly #onClosed: () => void;
  readonly #events: WatchEvent[] = [];
  #ending: Script["ending"];
  #wake = () => {};

  constructor(signal: AbortSignal, heedsSignal: boolean, onClosed: () => void) {
    this.#onClosed = onClosed;
    if (heedsSignal) {
      signal.addEventListener("abort", () => {
        this.#events.length = 0;
        this.close(signal.reason);
      });
    }
  }

  send(event: WatchEvent): void {
    if (this.#ending !== undefined) return;
    this.#events.push(event);
    this.#wake();
  }

  close(ending: Exclude<Script["ending"], undefined>): void {
    for (const cancel of this.timers) cancel();
    this.#ending = ending;
    this.#onClosed();
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    try {
      for (;;) {
        for (let event = this.#events.shift(); event; event = this.#events.shift()) yield event;
        if (this.#ending === "end") return;
        if (this.#ending instanceof Error) throw this.#ending;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.close("end");
    }
  }
}
