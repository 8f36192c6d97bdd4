import type { OwnershipRule } from "../../../src/kubernetes/ownership.ts";
import type { EndpointSlice } from "../../../src/kubernetes/slice-api.ts";
import type { Registration } from "../../../src/pools/pool.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { joinedLists } from "../../support/joined-lists.ts";
import { type SliceEvent, SliceModel } from "../../support/slice-events.ts";

/** A watch that ends sooner was none. */
const SHORT_MS = 1000;
/** For so long, the slices may do without a watch. */
const UNWATCHED_MS = 30_000;

/** The lists that were made last, and of what. */
interface Joined {
  readonly version: number;
  readonly live: readonly string[];
  readonly pools: string;
  readonly routers: string;
}

/** What one replica was shown of the slices, and since when it has not been shown any. */
export class ImportsModel {
  readonly #rule: OwnershipRule;
  readonly #clock: Clock;
  readonly #slices = new SliceModel();
  readonly #startedAtMs: number;
  #isSynced = false;
  #establishedAtMs: number | undefined;
  /** When the last watch that lasted was last heard of, and when it was over. */
  #heardAtMs: number;
  #watchedUntilMs: number;
  #version = 0;
  #joined: Joined | undefined;

  constructor(rule: OwnershipRule, clock: Clock) {
    this.#rule = rule;
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.#heardAtMs = this.#startedAtMs;
    this.#watchedUntilMs = this.#startedAtMs;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  slices(): EndpointSlice[] {
    return this.#slices.slices();
  }

  apply(event: SliceEvent): void {
    this.#slices.apply(event);
    this.#version += 1;
    if (event.type === "replace") this.#isSynced = true;
    else this.heard();
  }

  watchBegan(): void {
    this.#establishedAtMs = this.#clock.monotonicMs();
    this.heard();
  }

  heard(): void {
    if (this.#establishedAtMs !== undefined && this.#lasted()) {
      this.#heardAtMs = this.#clock.monotonicMs();
    }
  }

  /** `isSilent` where it was given up, and may have been lost long before. */
  watchEnded(isSilent: boolean): void {
    if (this.#establishedAtMs === undefined) return;
    if (this.#lasted()) {
      this.#watchedUntilMs = this.#clock.monotonicMs();
      if (!isSilent) this.#heardAtMs = this.#watchedUntilMs;
    }
    this.#establishedAtMs = undefined;
  }

  /** Whether the slices have to count as current; undefined where they may or may not. */
  isCurrent(): boolean | undefined {
    if (!this.#isSynced) return false;
    if (this.#establishedAtMs !== undefined && this.#lasted()) return true;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#watchedUntilMs > UNWATCHED_MS) return false;
    return nowMs - this.#heardAtMs <= UNWATCHED_MS ? true : undefined;
  }

  /** The lists that this makes of live registrations, the one of pools as if it were complete. */
  join(live: readonly string[]): { readonly pools: string; readonly routers: string } {
    const known = this.#joined;
    const isKnown =
      known?.version === this.#version &&
      known.live.length === live.length &&
      known.live.every((json, index) => json === live[index]);
    if (isKnown) return known;
    // They were made by `JSON.stringify` of registrations.
    const registrations = live.map((json) => JSON.parse(json) as Registration);
    const lists = joinedLists(this.#rule, this.slices(), registrations, "http");
    this.#joined = { version: this.#version, live, ...lists };
    return this.#joined;
  }

  #lasted(): boolean {
    return this.#clock.monotonicMs() - (this.#establishedAtMs ?? 0) >= SHORT_MS;
  }
}
