/**
 * Lives through the rare hours of a discovery service, in no time and as often as one likes.
 *
 * A seed makes a plan (`plan-of.ts`): a few replicas in two regions, pools with their relays, and faults. A
 * run carries it out: the real stores, directories and reflectors, put together as `startService` does
 * (`process.ts`), on clocks that only a scheduler moves (`scheduler.ts`, `machine.ts`), with a simulated
 * Global Table (`global-table.ts`, `table-client.ts`), a simulated API server (`api-server.ts`,
 * `slice-client.ts`) and a simulated network (`relay.ts`). First the faults have their time, then
 * everything heals.
 *
 * Beside each process, a model (`model/`) works out anew what the reference says that it should list,
 * from what the process was told, read and shown; an inspector compares the two, byte for byte, at each
 * step. And by who was answered what, knowing nothing of leases, the two promises that matter most are
 * checked of the model itself (`model/promises.ts`). What has to hold is listed in `violation.ts`.
 *
 * All that happens is a function of the plan: a seed that fails does so each time. `shrink.ts` leaves out
 * what of a plan is not needed for that.
 */
import { ApiServer } from "./api-server.ts";
import { FaultDriver } from "./fault-driver.ts";
import { GlobalTable } from "./global-table.ts";
import { Inspector } from "./inspector.ts";
import { Promises } from "./model/promises.ts";
import { faultsOf, type Plan } from "./plan.ts";
import { Random } from "./random.ts";
import { Relay } from "./relay.ts";
import { Replica } from "./replica.ts";
import { Scheduler } from "./scheduler.ts";
import { SliceFarm } from "./slice-farm.ts";
import type { Invariant, Violation } from "./violation.ts";
import { WaitingRouter } from "./waiting-router.ts";

export interface Outcome {
  readonly violation: Violation | undefined;
  readonly simulatedMs: number;
  readonly steps: number;
  /** Stands for all that was answered. */
  readonly digest: bigint;
}

/** How often the list of each replica is read. */
const ROUTER_POLL_MS = { least: 300, most: 3000 } as const;

/** Carries out a plan, up to the first thing that should not be. */
export function run(plan: Plan): Outcome {
  return new Run(plan).outcome();
}

class Run {
  readonly #plan: Plan;
  readonly #scheduler = new Scheduler();
  readonly #random: Random;
  readonly #table: GlobalTable;
  readonly #server = new ApiServer();
  readonly #inspector: Inspector;
  readonly #replicas: readonly Replica[];
  #violation: Violation | undefined;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#random = new Random(plan.seed).fork("run");
    const scheduler = this.#scheduler;
    this.#table = new GlobalTable(plan, scheduler, this.#random.fork("table"));
    const farm =
      plan.mode === "registrations"
        ? undefined
        : new SliceFarm(plan, this.#server, scheduler, this.#random.fork("slices"));
    const promises = new Promises(plan.settings);
    this.#inspector = new Inspector({ promises, report: (...what) => this.#report(...what) });
    this.#replicas = plan.replicas.map(
      (replica) =>
        new Replica({
          plan,
          replica,
          scheduler,
          promises,
          random: this.#random.fork(replica.name),
          table: this.#table,
          server: this.#server,
          inspector: this.#inspector,
          report: (invariant, message) => this.#report(invariant, replica.name, message),
        }),
    );
    for (const pool of plan.pools) {
      for (const name of pool.relays) {
        const random = this.#random.fork(`relay ${name}`);
        new Relay({ plan, pool, name, replicas: this.#replicas, scheduler, random });
      }
    }
    for (const replica of this.#replicas) {
      this.#poll(replica, this.#random.fork(`router ${replica.plan.name}`));
      this.#probe(replica, this.#random.fork(`probe ${replica.plan.name}`));
      if (plan.settings.hasWaiters) this.#wait(replica);
    }
    const faults = new FaultDriver({
      plan,
      scheduler,
      replicas: this.#replicas,
      table: this.#table,
      server: this.#server,
      farm,
    });
    for (const fault of plan.faults) scheduler.at(fault.atMs, () => faults.begin(fault));
    scheduler.afterEach = () => this.#afterEach();
  }

  outcome(): Outcome {
    const scheduler = this.#scheduler;
    scheduler.runUntil(this.#plan.faultsForMs);
    scheduler.in(1000, () => this.#table.tidy());
    scheduler.runUntil(this.#plan.faultsForMs + healingMs(this.#plan));
    this.#inspector.expectTruth(this.#plan, this.#replicas, this.#server);
    scheduler.runUntil(scheduler.nowMs + 1000 * this.#plan.settings.leaseSecs);
    this.#inspector.expectTruth(this.#plan, this.#replicas, this.#server);
    this.#close();
    return {
      violation: this.#violation,
      simulatedMs: this.#violation?.atMs ?? scheduler.nowMs,
      steps: scheduler.steps,
      digest: this.#inspector.digest,
    };
  }

  /** Ends all replicas. Once every deadline has passed, nothing of theirs goes on but the beat. */
  #close(): void {
    const machines = this.#replicas.map((replica) => ({ replica, machine: replica.close() }));
    this.#scheduler.runUntil(this.#scheduler.nowMs + 20_000);
    for (const { replica, machine } of machines) {
      if (machine === undefined || machine.timers <= 1) continue;
      this.#report("bounds", replica.plan.name, `${machine.timers} timers wait after its end`);
    }
  }

  #report(invariant: Invariant, replica: string, message: string): void {
    this.#violation ??= { invariant, replica, message, atMs: this.#scheduler.nowMs };
    this.#scheduler.stop();
  }

  #afterEach(): void {
    if (!this.#plan.settings.isAlwaysChecked) return;
    for (const replica of this.#replicas) if (replica.isTouched) replica.glanceAt();
  }

  /** A router reads a replica's list from time to time, and says which it has. */
  #poll(replica: Replica, random: Random): void {
    let etag: string | undefined;
    const ask = () => {
      replica.ask((process) => {
        const answer = process.get("pools", etag);
        this.#inspector.pools(replica.plan, process, answer);
        this.#inspector.promises(replica.plan, process);
        this.#inspector.condition(replica.plan, etag, answer);
        etag = answer.etag || etag;
      });
      this.#scheduler.in(random.int(ROUTER_POLL_MS.least, ROUTER_POLL_MS.most), ask);
    };
    ask();
  }

  /** Three routers wait for its lists to change. */
  #wait(replica: Replica): void {
    const { name } = replica.plan;
    for (const [index, path] of (["pools", "pools", "routers"] as const).entries()) {
      new WaitingRouter({
        replica,
        path,
        scheduler: this.#scheduler,
        random: this.#random.fork(`waiting router ${index} ${name}`),
        inspector: this.#inspector,
        report: (message) => this.#report("waits", name, message),
      });
    }
  }

  /** Looks at a replica when something is so for the last time, and a moment later. */
  #probe(replica: Replica, random: Random): void {
    const scheduler = this.#scheduler;
    const choose = () => {
      const { process } = replica;
      // Asking the model of a process that is stopped would count as its waking up.
      const ms = process?.machine.isRunning ? process.store.lastMoment(random) : 0;
      if (ms > scheduler.nowMs && ms < scheduler.nowMs + 120_000) {
        for (const atMs of [ms, ms + 1]) {
          scheduler.at(atMs, () => replica.ask(() => replica.lookAt()));
        }
      }
      scheduler.in(random.int(100, 2000), choose);
    };
    choose();
  }
}

/** How long after the last fault every list has to be the truth, by the limits of the reference. */
function healingMs(plan: Plan): number {
  const { leaseSecs, skewSecs, graceSecs, pollSecs } = plan.settings;
  const cutSilently = faultsOf(plan, "cut").some(({ how }) => how === "silence");
  const secs = [
    leaseSecs + skewSecs + graceSecs,
    // A read that hangs when the faults end, and the longest wait for the next.
    10 + 4.4 * pollSecs,
    // The last try to start, and a page or a watch that hangs, with the longest backoff.
    plan.mode === "registrations" ? 15 : 80,
    // The longest time-out of a watch.
    cutSilently ? 310 : 0,
  ];
  return 1000 * secs.reduce((sum, each) => sum + each, 0);
}
