import { ServiceError } from "../../src/runtime/errors.ts";
import type { Inspector } from "./inspector.ts";
import type { Machine } from "./machine.ts";
import type { Answer, Path, Process } from "./process.ts";
import type { Random } from "./random.ts";
import type { Replica } from "./replica.ts";
import type { Scheduler } from "./scheduler.ts";

/**
 * A change is told within so much time in which the process runs: it is looked for every 0.1 s, and no
 * sooner than 0.1 s after the last was told.
 */
const TOLD_WITHIN_MS = 250;
/** How often it asks, or looks at how its wait goes. */
const EVERY_MS = { least: 20, most: 400 } as const;
/** How often it looks while a change is due: one that comes and goes must not pass for one that lasts. */
const DUE_EVERY_MS = 10;

export interface WaitingRouterOptions {
  readonly replica: Replica;
  readonly path: Path;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly inspector: Inspector;
  readonly report: (message: string) => void;
}

/** A request that is held. */
interface Wait {
  readonly process: Process;
  readonly controller: AbortController;
  readonly beganAtMs: number;
  readonly waitMs: number;
  /** What the list should be instead of what the router has, and since when. */
  due: { readonly body: string; readonly sinceMs: number } | undefined;
}

/** A router that asks for a list again and again, and waits for it to change (`Prefer: wait`). */
export class WaitingRouter {
  readonly #options: WaitingRouterOptions;
  /** What it has. */
  #list: Answer | undefined;
  #wait: Wait | undefined;

  constructor(options: WaitingRouterOptions) {
    this.#options = options;
    this.#goOn();
  }

  /** Asks, or looks whether the wait should be over, now and then. */
  #goOn(): void {
    const { scheduler, random, replica } = this.#options;
    const anyMs = random.int(EVERY_MS.least, EVERY_MS.most);
    if (this.#wait?.process.machine.isDead) this.#wait = undefined;
    replica.ask((process) => {
      if (this.#wait === undefined) this.#ask(process);
      else if (this.#wait.process === process) this.#check(this.#wait);
    });
    scheduler.in(this.#wait?.due === undefined ? anyMs : DUE_EVERY_MS, () => this.#goOn());
  }

  #ask(process: Process): void {
    const { path, random } = this.#options;
    if (this.#list === undefined || random.chance(0.1)) {
      const answer = process.get(path);
      if (answer.status !== 503) this.#list = answer;
      return;
    }
    const { etag } = this.#list;
    const controller = new AbortController();
    const wait: Wait = {
      process,
      controller,
      beganAtMs: process.machine.monotonicMs(),
      waitMs: 1000 * random.int(1, 20),
      due: undefined,
    };
    this.#wait = wait;
    try {
      process.hold(path, {
        has: (list) => list.etags.identity === etag,
        waitMs: wait.waitMs,
        signal: controller.signal,
        answer: (list) => this.#answered(wait, list && process.answerOf(list)),
      });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#wait = undefined;
    }
  }

  #answered(wait: Wait, answer: Answer | undefined): void {
    const { inspector, report, replica, path } = this.#options;
    if (this.#wait !== wait) report("a wait was answered twice");
    this.#wait = undefined;
    if (answer === undefined) {
      if (!wait.controller.signal.aborted) report("a router was taken for one that has gone away");
      return;
    }
    inspector[path](replica.plan, wait.process, answer);
    const waitedMs = wait.process.machine.monotonicMs() - wait.beganAtMs;
    const isOver = waitedMs >= wait.waitMs || wait.process.isEnding;
    if (answer.etag === this.#list?.etag && !isOver) {
      report(`after ${waitedMs} of ${wait.waitMs} ms the answer was what the router had`);
    }
    this.#list = answer;
  }

  #check(wait: Wait): void {
    const { inspector, report, path, random } = this.#options;
    const { machine } = wait.process;
    const overdueMs = machine.monotonicMs() - wait.beganAtMs - wait.waitMs;
    if (Math.min(overdueMs, machine.runningForMs) > 0) report(`it waits ${overdueMs} ms too long`);
    const body = inspector.expected(path, wait.process);
    if (body === undefined || body === this.#list?.body) wait.due = undefined;
    else if (body !== wait.due?.body) wait.due = { body, sinceMs: machine.monotonicMs() };
    else if (isLate(wait.due.sinceMs, machine)) report(`it waits, though the list is ${body}`);
    if (random.chance(0.01)) this.#leave(wait);
  }

  #leave(wait: Wait): void {
    wait.controller.abort();
    if (this.#wait === wait) this.#options.report("a router that went away still waits");
  }
}

function isLate(sinceMs: number, machine: Machine): boolean {
  return Math.min(machine.monotonicMs() - sinceMs, machine.runningForMs) > TOLD_WITHIN_MS;
}
