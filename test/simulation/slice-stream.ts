import { ApiError, type WatchEvent } from "../../src/kubernetes/slice-api.ts";
import type { Machine } from "./machine.ts";
import type { ImportsModel } from "./model/imports-model.ts";
import type { Scheduler } from "./scheduler.ts";

/** How a watch is broken off. */
export type Cut = "end" | "error" | "silence" | "expired";

export interface StreamOptions {
  readonly machine: Machine;
  readonly scheduler: Scheduler;
  /** Is told what the replica is shown. */
  readonly model: ImportsModel;
}

/** The events of one watch on their way, in order. */
export class SliceStream implements AsyncIterable<WatchEvent> {
  readonly #options: StreamOptions;
  readonly #signal: AbortSignal;
  readonly #on: { readonly closed: () => void; readonly seen: (version: string) => void };
  readonly #arrived: WatchEvent[] = [];
  #ending: Cut | undefined;
  #arrivesAtMs = 0;
  #cancels: readonly (() => void)[] = [];
  #isClosed = false;
  #wake = () => {};

  constructor(
    options: StreamOptions,
    signal: AbortSignal,
    on: { readonly closed: () => void; readonly seen: (version: string) => void },
  ) {
    this.#options = options;
    this.#signal = signal;
    this.#on = on;
    signal.addEventListener("abort", () => {
      options.model.watchEnded(true);
      this.#close();
    });
  }

  untilClosed(...cancels: readonly (() => void)[]): void {
    this.#cancels = cancels;
    // Whoever asked may have given up meanwhile.
    if (this.#signal.aborted) this.#close();
  }

  send(event: WatchEvent, delayMs: number): void {
    this.#arrive(delayMs, () => this.#arrived.push(event));
  }

  close(how: Cut): void {
    this.#close();
    if (how === "silence") return;
    this.#arrive(1, () => {
      this.#ending = how;
    });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent> {
    const { model } = this.#options;
    for (;;) {
      for (let event = this.#arrived.shift(); event; event = this.#arrived.shift()) {
        if (this.#signal.aborted) return;
        if (event.type === "BOOKMARK") {
          model.heard();
          this.#on.seen(event.resourceVersion);
        } else {
          model.apply({ type: event.type === "DELETED" ? "remove" : "put", slice: event.slice });
          this.#on.seen(event.slice.metadata.resourceVersion);
        }
        yield event;
      }
      if (this.#ending !== undefined) {
        model.watchEnded(false);
        if (this.#ending === "end") return;
        throw this.#ending === "expired"
          ? new ApiError("expired", "too old resource version")
          : new ApiError("error", "the connection was lost");
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Nothing overtakes what was sent before it. */
  #arrive(delayMs: number, take: () => void): void {
    const { scheduler, machine } = this.#options;
    this.#arrivesAtMs = Math.max(this.#arrivesAtMs, scheduler.nowMs + delayMs);
    scheduler.at(this.#arrivesAtMs, () =>
      machine.deliver(() => {
        take();
        this.#wake();
      }),
    );
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const cancel of this.#cancels) cancel();
    this.#on.closed();
  }
}
