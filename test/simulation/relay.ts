import type { Registration } from "../../src/pools/pool.ts";
import { makeRegistration } from "../support/pools.ts";
import { faultsOf, isActive, type Plan, type PoolPlan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Replica } from "./replica.ts";
import type { Scheduler } from "./scheduler.ts";

export interface RelayOptions {
  readonly plan: Plan;
  readonly pool: PoolPlan;
  readonly name: string;
  readonly replicas: readonly Replica[];
  readonly scheduler: Scheduler;
  readonly random: Random;
}

/** The registration of a pool as all its relays know it. */
export function registrationOf({ name, cluster, namespace, region }: PoolPlan): Registration {
  return makeRegistration({
    key: { cluster_id: cluster, namespace, dgd_name: name },
    location: { region, availability_zone: null, datacenter: null },
    capabilities: ["aggregated", "chat", "vision"],
    frontends: ["http://10.43.1.2:8000/", "http://10.43.1.3:8000/"],
    capacity: [
      { sku: "H100", workers: 8 },
      { sku: "A100", workers: 4 },
    ],
  });
}

/** Whether a pool's relays are at work. */
export function isAlive(plan: Plan, pool: PoolPlan, nowMs: number): boolean {
  return !faultsOf(plan, "gone").some(
    (fault) => fault.pool === pool.name && isActive(fault, nowMs),
  );
}

/** A Pool Relay: registers its pool again and again, over a network that plays tricks. */
export class Relay {
  readonly #options: RelayOptions;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { scheduler, random, plan } = options;
    scheduler.in(random.int(0, 1000 * plan.settings.heartbeatSecs), () => this.#beat());
  }

  #beat(): void {
    const { scheduler, random, plan, pool } = this.#options;
    scheduler.in(plan.settings.heartbeatSecs * random.int(900, 1050), () => this.#beat());
    if (!isAlive(plan, pool, scheduler.nowMs)) return;
    const registration = this.#registration();
    const text = textOf(registration, random);
    for (const replica of this.#asked()) this.#send(replica, registration, text);
  }

  /** With its lists in any order, and different from the others' where the plan says so. */
  #registration(): Registration {
    const { plan, pool, name, random, scheduler } = this.#options;
    const registration = registrationOf(pool);
    const disagrees = faultsOf(plan, "disagree").some(
      (fault) => fault.relay === name && isActive(fault, scheduler.nowMs),
    );
    const model = disagrees ? `model of ${name}` : registration.model;
    if (random.chance(0.7)) return { ...registration, model };
    return {
      ...registration,
      model,
      capabilities: random.shuffled(registration.capabilities),
      frontends: random.shuffled(registration.frontends),
      capacity: random.shuffled(registration.capacity),
    };
  }

  /** With the table any replica of a region will do; without it each has to be told. */
  #asked(): readonly Replica[] {
    const { plan, pool, replicas, random, scheduler } = this.#options;
    if (plan.store === "memory") return replicas;
    const isFailedOver = faultsOf(plan, "failover").some(
      (fault) => fault.pool === pool.name && isActive(fault, scheduler.nowMs),
    );
    const near = replicas.filter(
      (replica) => (replica.plan.region === pool.region) !== isFailedOver,
    );
    return [random.pick(near.length > 0 ? near : replicas)];
  }

  #send(replica: Replica, registration: Registration, text: string): void {
    const { scheduler, random, plan } = this.#options;
    const { nowMs } = scheduler;
    const tricks = faultsOf(plan, "messages").filter((fault) => isActive(fault, nowMs));
    if (tricks.some(({ loss }) => random.chance(loss))) return;
    const copies = tricks.some(({ twice }) => random.chance(twice)) ? 2 : 1;
    const mostMs = Math.max(40, ...tricks.map(({ delayMs }) => delayMs));
    for (let copy = 0; copy < copies; copy += 1) {
      // Nothing is on its way for long once the faults are over.
      const atMs = Math.min(nowMs + random.int(1, mostMs), Math.max(nowMs + 40, plan.faultsForMs));
      scheduler.at(atMs, () => replica.ask((process) => process.post(registration, text)));
    }
  }
}

/** The registration as somebody may write it: with more white space, or with more in it. */
function textOf(registration: Registration, random: Random): string {
  const form = random.next();
  if (form < 0.8) return JSON.stringify(registration);
  if (form < 0.9) return JSON.stringify(registration, null, 2);
  return JSON.stringify({ relay: "a field that nobody knows", ...registration });
}
