import type { Cancel, Clock } from "../runtime/clock.ts";
import { limits } from "../runtime/limits.ts";
import type { Directory } from "./directory.ts";
import type { Representation } from "./representation.ts";

/** A client that waits for a list to change. */
export interface Client {
  /** Whether the client has this content already. */
  has(list: Representation): boolean;
  readonly waitMs: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /**
   * Called once: with the list once the client doesn't have it, when its time is up, or at the end;
   * with undefined when the client has gone away.
   */
  answer(list: Representation | undefined): void;
}

export interface ListWaitersOptions {
  /** The list as of now; see `Directory.pools`. */
  readonly list: () => Representation;
  /** Whether there are as many waiters as there may be. */
  readonly isFull: () => boolean;
  readonly clock: Clock;
}

interface Waiter {
  readonly client: Client;
  readonly cancelDeadline: Cancel;
}

/**
 * The clients that wait for one list to change.
 *
 * While there are any, the list is looked at as soon as it may have changed, and every 100 ms for
 * what changes by time alone. All who don't have it then are told, and after that the list is left
 * alone for a while: what changes meanwhile is told at once to all, from bytes that are made once.
 */
export class ListWaiters {
  readonly list: () => Representation;
  readonly #isFull: () => boolean;
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();
  /** Those of them for whom the list has not been looked at yet. */
  readonly #arrived = new Set<Waiter>();
  /** The list that all the others have. */
  #seen: Representation | undefined;
  #quietUntilMs = Number.NEGATIVE_INFINITY;
  #nextLook: { readonly atMs: number; readonly cancel: Cancel } | undefined;
  #isLooking = false;
  /** Whether there was a reason to look while that was being done. */
  #looksAgain = false;
  #isOver = false;

  constructor({ list, isFull, clock }: ListWaitersOptions) {
    this.list = list;
    this.#isFull = isFull;
    this.#clock = clock;
  }

  /** How many there are. */
  get count(): number {
    return this.#waiting.size;
  }

  /** Whether one more may wait. */
  isOpen(): boolean {
    return !this.#isOver && !this.#isFull();
  }

  /**
   * Lets a client wait.
   *
   * @throws ServiceError `unavailable`, at once, while the list can't be told yet
   */
  hold(client: Client): void {
    // Once it can be told, it always can; so looking at it later does not throw.
    this.#seen ??= this.list();
    const waiter: Waiter = {
      client,
      cancelDeadline: this.#clock.after(client.waitMs, () => this.#release(waiter, this.list())),
    };
    client.signal.addEventListener("abort", () => this.#release(waiter, undefined));
    this.#waiting.add(waiter);
    this.#arrived.add(waiter);
    this.#lookIn(0);
  }

  /** The list may have changed. Costs nothing where nobody waits. */
  changed(): void {
    this.#lookIn(0);
  }

  /** Tells everyone the list as it is, and lets nobody wait from now on. */
  end(): void {
    this.#isOver = true;
    if (this.#waiting.size === 0) return;
    const list = this.list();
    for (const waiter of this.#waiting) this.#release(waiter, list);
  }

  #release(waiter: Waiter, list: Representation | undefined): void {
    if (!this.#waiting.delete(waiter)) return;
    this.#arrived.delete(waiter);
    waiter.cancelDeadline();
    waiter.client.answer(list);
    if (this.#waiting.size > 0) return;
    this.#seen = undefined;
    this.#nextLook?.cancel();
    this.#nextLook = undefined;
  }

  /** Sees to it that the list is looked at by then, but not before the quiet time is over. */
  #lookIn(delayMs: number): void {
    if (this.#waiting.size === 0) return;
    if (this.#isLooking) {
      this.#looksAgain = true;
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    const atMs = Math.max(nowMs + delayMs, this.#quietUntilMs);
    if (this.#nextLook !== undefined) {
      if (this.#nextLook.atMs <= atMs) return;
      this.#nextLook.cancel();
    }
    const cancel = this.#clock.after(atMs - nowMs, () => {
      this.#nextLook = undefined;
      void this.#look();
    });
    this.#nextLook = { atMs, cancel };
  }

  /** Looks at the list, and tells it to whoever doesn't have it. */
  async #look(): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    const list = this.list();
    const candidates = [...(list === this.#seen ? this.#arrived : this.#waiting)];
    this.#seen = list;
    this.#arrived.clear();
    this.#isLooking = true;
    const isTold = await this.#tell(candidates, list);
    this.#isLooking = false;
    const nowMs = this.#clock.monotonicMs();
    const { least, most } = limits.waitersQuietMs;
    // Of all time, a tenth goes into this.
    const quietMs = Math.max(isTold ? least : 0, 9 * (nowMs - startedMs));
    this.#quietUntilMs = nowMs + Math.min(quietMs, most);
    const delayMs = this.#looksAgain ? 0 : limits.waitersLookMs;
    this.#looksAgain = false;
    this.#lookIn(delayMs);
  }

  /**
   * Tells the list to those who don't have it, with breaks for whatever else there is to do.
   *
   * @returns whether there were any
   */
  async #tell(waiters: readonly Waiter[], list: Representation): Promise<boolean> {
    let isTold = false;
    let turnBeganMs = this.#clock.monotonicMs();
    for (const waiter of waiters) {
      if (waiter.client.has(list)) continue;
      isTold = true;
      this.#release(waiter, list);
      // Lets the answer be sent, which is most of what it takes.
      await undefined;
      if (this.#clock.monotonicMs() - turnBeganMs < limits.waitersTurnMs) continue;
      await new Promise<void>((resolve) => this.#clock.after(0, resolve));
      turnBeganMs = this.#clock.monotonicMs();
    }
    return isTold;
  }
}

/** The clients that wait for a change, by the list that they wait for. */
export class Waiters {
  readonly pools: ListWaiters;
  readonly routers: ListWaiters;

  constructor(directory: Directory, clock: Clock) {
    const isFull = () => this.pools.count + this.routers.count >= limits.waiters;
    this.pools = new ListWaiters({ list: () => directory.pools(), isFull, clock });
    this.routers = new ListWaiters({ list: () => directory.routers(), isFull, clock });
    directory.onChange(() => {
      this.pools.changed();
      this.routers.changed();
    });
  }

  /** Answers all of them, and lets nobody wait from now on. */
  end(): void {
    this.pools.end();
    this.routers.end();
  }
}
