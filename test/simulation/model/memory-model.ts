import type { Registration } from "../../../src/pools/pool.ts";
import type { Machine } from "../machine.ts";
import type { Settings } from "../plan.ts";
import type { Random } from "../random.ts";
import { RunningTime } from "./running-time.ts";
import { membersOf, type Registering, type StoreModel } from "./store-model.ts";

interface Lease {
  readonly members: string;
  readonly json: string;
  readonly renewedAtMs: number;
}

/** Section "The memory store" of the reference. */
export class MemoryModel implements StoreModel {
  readonly #leaseMs: number;
  readonly #machine: Machine;
  readonly #running: RunningTime;
  readonly #leases = new Map<string, Lease>();

  constructor(settings: Settings, machine: Machine) {
    this.#leaseMs = settings.leaseSecs * 1000;
    this.#machine = machine;
    this.#running = new RunningTime(machine);
  }

  beat(): void {
    this.#running.beat();
  }

  isReady(): boolean {
    return true;
  }

  isComplete(): boolean {
    this.#running.look();
    return this.#running.hasRunFor(this.#leaseMs);
  }

  live(): Map<string, string> {
    this.#drop();
    const live = new Map<string, string>();
    for (const [id, { json }] of this.#leases) live.set(id, json);
    return live;
  }

  register(id: string, registration: Registration): Registering {
    this.#drop();
    const lease = this.#leases.get(id);
    const members = membersOf(registration);
    const json = lease?.members === members ? lease.json : JSON.stringify(registration);
    return {
      acknowledged: () => {
        this.#leases.set(id, { members, json, renewedAtMs: this.#running.nowMs() });
      },
    };
  }

  pausedMs(): number {
    return this.#running.pausedMs;
  }

  lastMoment(random: Random): number {
    const lease = random.pick([undefined, ...this.#leases.values()]);
    const leftMs =
      lease === undefined
        ? this.#running.leftOf(this.#leaseMs)
        : lease.renewedAtMs + this.#leaseMs - this.#running.nowMs();
    return this.#machine.whenElapsed(leftMs);
  }

  #drop(): void {
    this.#running.look();
    const nowMs = this.#running.nowMs();
    for (const [id, { renewedAtMs }] of this.#leases) {
      if (renewedAtMs + this.#leaseMs < nowMs) this.#leases.delete(id);
    }
  }
}
