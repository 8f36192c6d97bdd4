import type { Inspector } from "./inspector.ts";
import { LogChecker } from "./log-checker.ts";
import { Machine, type WakeOrder } from "./machine.ts";
import type { ReplicaPlan } from "./plan.ts";
import { Process, type ProcessOptions } from "./process.ts";
import type { Random } from "./random.ts";

export interface ReplicaOptions extends Omit<ProcessOptions, "machine" | "log" | "random"> {
  readonly inspector: Inspector;
  readonly random: Random;
}

/** One replica: its processes, one after the other, on a host with a wall clock. */
export class Replica {
  readonly plan: ReplicaPlan;
  readonly #options: ReplicaOptions;
  #process: Process | undefined;
  #starts = 0;
  /** How far its wall clock has been set from where it was. */
  #jumpedMs = 0;
  /** Whether its process has done something since it was last looked at. */
  isTouched = false;

  constructor(options: ReplicaOptions) {
    this.plan = options.replica;
    this.#options = options;
    this.start();
  }

  /** The process; undefined while there is none. */
  get process(): Process | undefined {
    return this.#process;
  }

  start(): void {
    if (this.#process !== undefined) return;
    const { scheduler, replica } = this.#options;
    this.#starts += 1;
    const random = this.#options.random.fork(`start ${this.#starts}`);
    const machine = new Machine({
      scheduler,
      random: random.fork("clock"),
      driftPpm: replica.driftPpm,
      wallOffsetMs: replica.wallErrorMs + this.#jumpedMs,
    });
    machine.onActive = () => {
      this.isTouched = true;
    };
    const log = new LogChecker(machine, (message) => this.#options.report("log", message));
    this.#process = new Process({ ...this.#options, machine, random, log });
  }

  /** Ends the process, in good order or not. */
  stop(): void {
    if (this.#options.random.chance(0.5)) this.#process?.close();
    this.#process?.machine.kill();
    this.#process = undefined;
  }

  /** Closes the process, and lets its machine run on with nothing to do. */
  close(): Machine | undefined {
    const process = this.#process;
    process?.close();
    this.#process = undefined;
    return process?.machine;
  }

  pause(): void {
    this.#process?.machine.pause();
  }

  resume(order: WakeOrder): void {
    this.#process?.machine.resume(order);
  }

  jumpWall(ms: number): void {
    this.#jumpedMs += ms;
    this.#process?.machine.jumpWall(ms);
    this.isTouched = true;
  }

  /** Hands a request to the process, once it runs; nobody answers where there is none. */
  ask(action: (process: Process) => void): void {
    const process = this.#process;
    process?.machine.deliver(() => action(process));
  }

  /** Looks at its lists, after a step of its process. */
  glanceAt(): void {
    this.isTouched = false;
    const process = this.#process;
    if (process?.machine.isRunning) this.#options.inspector.lists(this.plan, process);
  }

  lookAt(): void {
    const process = this.#process;
    if (process?.machine.isRunning) this.#options.inspector.lookAt(this.plan, process);
  }
}
