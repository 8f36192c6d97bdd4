import type { Fields, Log } from "../../src/runtime/log.ts";
import type { Machine } from "./machine.ts";

/** A warning about one thing comes no sooner after the last. */
const WARNING_EVERY_MS = 60_000;

/** Reads one process's log as somebody who is woken by it. */
export class LogChecker implements Log {
  readonly #machine: Machine;
  readonly #report: (message: string) => void;
  readonly #present = new Set<unknown>();
  readonly #disagreedAtMs = new Map<unknown, number>();

  constructor(machine: Machine, report: (message: string) => void) {
    this.#machine = machine;
    this.#report = report;
  }

  debug(message: string, fields?: Fields): void {
    this.info(message, fields);
  }

  info(message: string, { pool }: Fields = {}): void {
    const isOdd =
      (message === "pool added" && this.#present.has(pool)) ||
      (message === "pool expired" && !this.#present.has(pool));
    if (isOdd) this.#report(`"${message}" was logged of ${pool} twice`);
    if (message === "pool added") this.#present.add(pool);
    if (message === "pool expired") this.#present.delete(pool);
  }

  warn(message: string, { pool }: Fields = {}): void {
    if (message !== "a registration replaced one that differs") return;
    const nowMs = this.#machine.monotonicMs();
    const lastMs = this.#disagreedAtMs.get(pool) ?? Number.NEGATIVE_INFINITY;
    if (nowMs - lastMs < WARNING_EVERY_MS) this.#report(`"${message}" of ${pool} comes too often`);
    this.#disagreedAtMs.set(pool, nowMs);
  }

  error(message: string): void {
    this.#report(`an error was logged: ${message}`);
  }
}
