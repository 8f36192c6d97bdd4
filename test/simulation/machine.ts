import type { Cancel, Clock } from "../../src/runtime/clock.ts";
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";

/** What a process that was stopped gets to do first once it goes on. */
export type WakeOrder = "timers first" | "input first" | "mixed";

/** The wall clock of the simulation at its start. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

interface Timer {
  readonly dueAtMs: number;
  readonly callback: () => void;
  isCancelled: boolean;
}

export interface MachineOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** How much faster than true time its clocks run, in parts per million. */
  readonly driftPpm: number;
  /** How far its wall clock is from the true one. */
  readonly wallOffsetMs: number;
}

/**
 * The machine that one process runs on: its clocks, and whether the process runs at all. While it
 * doesn't, timers that are due and whatever comes from outside have to wait.
 */
export class Machine implements Clock {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #rate: number;
  readonly #startedAtMs: number;
  #resumedAtMs: number;
  #wallOffsetMs: number;
  #isPaused = false;
  #isDead = false;
  #timers: Timer[] = [];
  #input: (() => void)[] = [];
  #pendingTimers = 0;
  /** Hears of each moment at which the process has done something. */
  onActive: () => void = () => {};
  /** Hears that the process goes on, before it does anything. */
  onWake: () => void = () => {};

  constructor({ scheduler, random, driftPpm, wallOffsetMs }: MachineOptions) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#rate = 1 + driftPpm / 1e6;
    this.#startedAtMs = scheduler.nowMs;
    this.#resumedAtMs = scheduler.nowMs;
    this.#wallOffsetMs = wallOffsetMs;
  }

  get isRunning(): boolean {
    return !this.#isPaused && !this.#isDead;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** For how long the process has been running without being stopped. */
  get runningForMs(): number {
    return this.#scheduler.nowMs - this.#resumedAtMs;
  }

  /** How many timers wait. */
  get timers(): number {
    return this.#pendingTimers;
  }

  monotonicMs(): number {
    return 1000 + Math.floor((this.#scheduler.nowMs - this.#startedAtMs) * this.#rate);
  }

  wallMs(): number {
    return EPOCH_MS + this.#startedAtMs + this.monotonicMs() - 1000 + this.#wallOffsetMs;
  }

  /** How far the wall clock is ahead of the true time. */
  wallErrorMs(): number {
    return this.wallMs() - EPOCH_MS - this.#scheduler.nowMs;
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  random(): number {
    return this.#random.next();
  }

  after(delayMs: number, callback: () => void): Cancel {
    const timer: Timer = { dueAtMs: this.monotonicMs() + delayMs, callback, isCancelled: false };
    this.#pendingTimers += 1;
    const forget = this.#scheduler.at(this.#whenMonotonic(timer.dueAtMs), () => {
      if (this.#isDead) return;
      if (this.#isPaused) this.#timers.push(timer);
      else this.#fire(timer);
    });
    return () => {
      if (timer.isCancelled) return;
      timer.isCancelled = true;
      this.#pendingTimers -= 1;
      forget();
    };
  }

  every(periodMs: number, callback: () => void): Cancel {
    let cancel: Cancel = () => {};
    const next = () => {
      cancel = this.after(periodMs, () => {
        next();
        callback();
      });
    };
    next();
    return () => cancel();
  }

  /** The first true moment at which the wall clock, as it runs now, shows this or more. */
  whenWall(wallMs: number): number {
    return this.#whenMonotonic(this.monotonicMs() + wallMs - this.wallMs());
  }

  /** The first true moment at which so much more has passed on the monotonic clock. */
  whenElapsed(ms: number): number {
    return this.#whenMonotonic(this.monotonicMs() + ms);
  }

  /** Hands something from outside to the process, once it runs. */
  deliver(action: () => void): void {
    if (this.#isDead) return;
    if (this.#isPaused) this.#input.push(action);
    else this.#act(action);
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Lets the process go on: what waits happens in turn, at this moment. */
  resume(order: WakeOrder): void {
    if (!this.#isPaused || this.#isDead) return;
    this.#isPaused = false;
    this.#resumedAtMs = this.#scheduler.nowMs;
    this.onWake();
    const timers = this.#timers.map((timer) => () => this.#fire(timer));
    const input = this.#input.map((action) => () => this.#act(action));
    this.#timers = [];
    this.#input = [];
    for (const action of this.#inOrder(timers, input, order)) {
      this.#scheduler.at(this.#scheduler.nowMs, action);
    }
  }

  /** Ends the process. Nothing that it began goes on here. */
  kill(): void {
    this.#isDead = true;
    this.#timers = [];
    this.#input = [];
  }

  #inOrder(timers: (() => void)[], input: (() => void)[], order: WakeOrder): (() => void)[] {
    if (order === "timers first") return [...timers, ...input];
    if (order === "input first") return [...input, ...timers];
    const merged: (() => void)[] = [];
    const [left, right] = [[...timers], [...input]];
    while (left.length + right.length > 0) {
      const from = this.#random.chance(left.length / (left.length + right.length)) ? left : right;
      const next = from.shift();
      if (next !== undefined) merged.push(next);
    }
    return merged;
  }

  #fire(timer: Timer): void {
    if (timer.isCancelled) return;
    // It may have been stopped again before its turn.
    if (this.#isPaused && !this.#isDead) {
      this.#timers.push(timer);
      return;
    }
    timer.isCancelled = true;
    this.#pendingTimers -= 1;
    this.#act(timer.callback);
  }

  #act(action: () => void): void {
    if (this.#isDead) return;
    if (this.#isPaused) {
      this.#input.push(action);
      return;
    }
    action();
    this.onActive();
  }

  /** The first true moment at which the monotonic clock shows this or more. */
  #whenMonotonic(monotonicMs: number): number {
    const elapsedMs = monotonicMs - 1000;
    let ms = Math.floor(elapsedMs / this.#rate) - 1;
    while (Math.floor(ms * this.#rate) < elapsedMs) ms += 1;
    return this.#startedAtMs + ms;
  }
}
