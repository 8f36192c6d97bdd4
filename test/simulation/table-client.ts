import type { Decoded, Item } from "../../src/registrations/dynamodb/item.ts";
import { ItemReader } from "../../src/registrations/dynamodb/item-reader.ts";
import {
  type RegistrationTable,
  TableError,
  type Write,
} from "../../src/registrations/dynamodb/table.ts";
import type { GlobalTable } from "./global-table.ts";
import type { Machine } from "./machine.ts";
import { faultsOf, isActive, type Plan, type ReplicaPlan, type TableTrouble } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";

/** Hears what a replica asks of the table, and what it is told. */
export interface TableListener {
  readBegan(signal: AbortSignal): ReadListener;
  writeBegan(signal: AbortSignal): void;
  /** It is about to be sent. */
  writeSent(signal: AbortSignal): void;
  /** A write was done in the table, heard of or not. Writes of one heartbeat have the same signal. */
  writeDone(write: Done, signal: AbortSignal): void;
}

/** A write as it was done. */
export interface Done {
  readonly id: string;
  /** What the item was. */
  readonly old: Item;
  /** The registration that it has now. */
  readonly text: string;
  readonly commit: number;
}

export interface ReadListener {
  pageCame(items: readonly Item[]): void;
  /** All pages have come, in time or not. */
  ended(): void;
  /** Nothing more will come. */
  over(): void;
}

export interface TableClientOptions {
  readonly plan: Plan;
  readonly replica: ReplicaPlan;
  readonly table: GlobalTable;
  readonly machine: Machine;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly listener: TableListener;
}

/** How long an answer takes that takes for ever. */
const NEVER_MS = Number.POSITIVE_INFINITY;

/** One replica's connection to the table of its region, with all that may befall it. */
export class TableClient implements RegistrationTable {
  readonly #options: TableClientOptions;
  /** Its answers are read as those of the real table are. */
  readonly #reader = new ItemReader();

  constructor(options: TableClientOptions) {
    this.#options = options;
  }

  async check(signal: AbortSignal): Promise<string[]> {
    return await this.#ask(signal, () => []);
  }

  async *pages(signal: AbortSignal): AsyncGenerator<readonly Decoded[]> {
    this.#reader.begin();
    const { plan, table, replica, listener, random } = this.#options;
    const read = listener.readBegan(signal);
    const { pageSize } = plan.settings;
    try {
      let afterId: string | undefined;
      for (let page = 1; ; page += 1) {
        const items = await this.#ask(signal, () => {
          if (this.#suffers("no reads")) throw new TableError("throttled", "no read capacity");
          if (page > 1 && this.#suffers("half reads") && random.chance(0.5)) {
            throw new TableError("error", "the read broke off");
          }
          return table.page(replica.region, afterId, pageSize);
        });
        read.pageCame(items);
        yield this.#reader.page(JSON.stringify({ Items: items })).items;
        afterId = items.at(-1)?.sk?.S;
        // A full page is followed by another, which may be empty, as with DynamoDB.
        if (items.length < pageSize) break;
      }
      this.#reader.end();
      read.ended();
    } finally {
      read.over();
    }
  }

  async write(write: Write, signal: AbortSignal): Promise<Item> {
    const { table, replica, listener, scheduler, machine, random } = this.#options;
    listener.writeBegan(signal);
    // There is work to do before it can be sent, in the middle of which the process may be stopped; and
    // now and then credentials to get.
    const workMs = random.int(0, random.chance(0.1) ? 400 : 5);
    await new Promise<void>((resolve) => {
      scheduler.in(workMs, () => machine.deliver(resolve));
    });
    if (write.isLate()) throw new TableError("timeout", "it was too late to send it");
    listener.writeSent(signal);
    return await this.#ask(
      signal,
      () => {
        const { old, commit } = table.update(replica.region, write);
        const text = table.get(replica.region, write.id)?.registration?.S ?? "";
        listener.writeDone({ id: write.id, old, text, commit }, signal);
        return old;
      },
      "write",
    );
  }

  close(): void {}

  /**
   * Sends a request, which the table serves however the replica fares meanwhile, and waits for the
   * answer; rejects once the signal is aborted, mostly.
   */
  #ask<T>(signal: AbortSignal, serve: () => T, verb: "read" | "write" = "read"): Promise<T> {
    const { plan, scheduler, machine, random } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let isOver = false;
    const end = (settle: () => void) => {
      if (isOver) return;
      isOver = true;
      settle();
    };
    if (!this.#suffers("deaf")) {
      const onAbort = () => end(() => reject(new TableError("timeout", "aborted")));
      if (signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
    }
    const isLate = verb === "write" && this.#suffers("late writes");
    const leftMs = Math.max(100, plan.faultsForMs - scheduler.nowMs);
    const thereMs = isLate ? Math.min(leftMs, random.int(100, 6000)) : random.int(1, 20);
    scheduler.in(thereMs, () => {
      const fault = this.#fault();
      if (fault === "hang") return;
      let settle: () => void;
      try {
        if (fault !== undefined) throw fault;
        const answer = serve();
        settle = () => resolve(answer);
      } catch (error) {
        settle = () => reject(error);
      }
      const backMs = this.#answerTakesMs(verb);
      if (backMs === NEVER_MS) return;
      scheduler.in(backMs, () => machine.deliver(() => end(settle)));
    });
    return promise;
  }

  #fault(): TableError | "hang" | undefined {
    const { random } = this.#options;
    if (this.#suffers("hang")) return "hang";
    if (this.#suffers("throttled") && random.chance(0.7))
      return new TableError("throttled", "slow down");
    if (this.#suffers("error") && random.chance(0.9)) return new TableError("error", "it failed");
    return undefined;
  }

  #answerTakesMs(verb: "read" | "write"): number {
    const { random } = this.#options;
    if (verb === "write" && this.#suffers("lost answers") && random.chance(0.7)) return NEVER_MS;
    if (this.#suffers("slow")) return random.int(10, 4000);
    return random.int(1, 20);
  }

  #suffers(how: TableTrouble): boolean {
    const { plan, replica, scheduler } = this.#options;
    return faultsOf(plan, "table").some(
      (fault) =>
        fault.how === how &&
        fault.region === replica.region &&
        (fault.replica ?? replica.name) === replica.name &&
        isActive(fault, scheduler.nowMs),
    );
  }
}
