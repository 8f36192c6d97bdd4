import {
  ApiError,
  type EndpointSlice,
  type SliceApi,
  type SlicePage,
  type WatchEvent,
} from "../../src/kubernetes/slice-api.ts";
import type { ApiServer } from "./api-server.ts";
import type { Machine } from "./machine.ts";
import type { ImportsModel } from "./model/imports-model.ts";
import { type ApiTrouble, faultsOf, isActive, type Plan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";
import { type Cut, SliceStream } from "./slice-stream.ts";
import type { Invariant } from "./violation.ts";

export interface SliceClientOptions {
  readonly plan: Plan;
  readonly replica: string;
  readonly server: ApiServer;
  readonly machine: Machine;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Is told what the replica is shown. */
  readonly model: ImportsModel;
  readonly report: (invariant: Invariant, message: string) => void;
}

/** One replica's connections to the API server, with all that may befall them. */
export class SliceClient implements SliceApi {
  readonly #options: SliceClientOptions;
  readonly #streams = new Set<SliceStream>();
  readonly #lists = new Map<
    string,
    { version: string; rest: EndpointSlice[]; shown: EndpointSlice[] }
  >();
  #asked = 0;
  /** The last version that the replica was told. */
  #seen = "";

  constructor(options: SliceClientOptions) {
    this.#options = options;
  }

  get openWatches(): number {
    return this.#streams.size;
  }

  async list(
    { limit, continueToken }: Parameters<SliceApi["list"]>[0],
    signal: AbortSignal,
  ): Promise<SlicePage> {
    const { server, plan, model } = this.#options;
    const { page, all } = await this.#ask(signal, () => {
      const list =
        continueToken === undefined
          ? { version: server.version, rest: server.slices(), shown: [] }
          : this.#lists.get(continueToken);
      if (list === undefined || server.since(list.version) === undefined) {
        throw new ApiError("expired", "the continue token is too old");
      }
      const size = Math.min(limit, plan.settings.pageSize);
      const slices = list.rest.slice(0, size);
      const next = { ...list, rest: list.rest.slice(size), shown: [...list.shown, ...slices] };
      this.#asked += 1;
      const token = next.rest.length === 0 ? undefined : `token ${this.#asked}`;
      this.#lists.clear();
      if (token !== undefined) this.#lists.set(token, next);
      const page = { slices, resourceVersion: list.version, continueToken: token };
      return { page, all: token === undefined ? next.shown : undefined };
    });
    if (all !== undefined && !signal.aborted) {
      model.apply({ type: "replace", slices: all });
      this.#seen = page.resourceVersion;
    }
    return page;
  }

  async watch(
    { resourceVersion, timeoutSecs }: Parameters<SliceApi["watch"]>[0],
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent>> {
    const { server, scheduler, random, model, report } = this.#options;
    if (resourceVersion !== this.#seen) {
      report("versions", `a watch from ${resourceVersion}, where ${this.#seen} was seen`);
    }
    const stream = await this.#ask(signal, () => {
      // A cache that is behind knows nothing of so new a version.
      if (this.#suffers("stale") && random.chance(0.5)) {
        throw new ApiError("error", "too large resource version");
      }
      const missed = server.since(resourceVersion);
      if (missed === undefined) throw new ApiError("expired", "too old resource version");
      const stream = new SliceStream(this.#options, signal, {
        closed: () => this.#streams.delete(stream),
        seen: (version) => {
          this.#seen = version;
        },
      });
      this.#streams.add(stream);
      for (const event of missed) stream.send(event, this.#delayMs());
      const lastsMs = this.#suffers("short watches") ? random.int(0, 900) : timeoutSecs * 1000;
      stream.untilClosed(
        server.watch((event) => stream.send(event, this.#delayMs())),
        scheduler.in(lastsMs, () => stream.close("end")),
        this.#bookmarks(stream),
      );
      return stream;
    });
    if (!signal.aborted) model.watchBegan();
    return stream;
  }

  /** Ends, or silences, what this replica watches. */
  cut(how: Cut): void {
    for (const stream of this.#streams) stream.close(how);
  }

  #bookmarks(stream: SliceStream): () => void {
    const { scheduler, random, server } = this.#options;
    let cancel = () => {};
    const next = () => {
      cancel = scheduler.in(random.int(5000, 60_000), () => {
        stream.send({ type: "BOOKMARK", resourceVersion: server.version }, this.#delayMs());
        next();
      });
    };
    next();
    return () => cancel();
  }

  #delayMs(): number {
    return this.#options.random.int(1, this.#suffers("stale") ? 15_000 : 30);
  }

  #ask<T>(signal: AbortSignal, serve: () => T): Promise<T> {
    const { scheduler, machine, random } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    scheduler.in(random.int(1, 50), () => {
      if (this.#suffers("hang")) return;
      const backMs = random.int(1, 50);
      let settle: () => void;
      try {
        if (this.#suffers("denied")) throw new ApiError("denied", "forbidden");
        if (this.#suffers("error") && random.chance(0.8)) throw new ApiError("error", "it failed");
        const answer = serve();
        settle = () => resolve(answer);
      } catch (error) {
        settle = () => reject(error);
      }
      scheduler.in(backMs, () => machine.deliver(settle));
    });
    return promise;
  }

  #suffers(how: ApiTrouble): boolean {
    const { plan, replica, scheduler } = this.#options;
    return faultsOf(plan, "api").some(
      (fault) =>
        fault.how === how &&
        (fault.replica ?? replica) === replica &&
        isActive(fault, scheduler.nowMs),
    );
  }
}
