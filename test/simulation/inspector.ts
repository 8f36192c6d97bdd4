import type { EndpointSlice } from "../../src/kubernetes/slice-api.ts";
import type { Registration } from "../../src/pools/pool.ts";
import { nameOf } from "../support/slice-events.ts";
import type { ApiServer } from "./api-server.ts";
import type { Promises } from "./model/promises.ts";
import { membersOf } from "./model/store-model.ts";
import type { Plan, ReplicaPlan } from "./plan.ts";
import type { Answer, Path, Process } from "./process.ts";
import { isAlive, registrationOf } from "./relay.ts";
import type { Replica } from "./replica.ts";
import type { Invariant } from "./violation.ts";

/** A list as it was sent. */
interface List {
  readonly pools: readonly { readonly key: Readonly<Record<string, string>> }[];
  readonly complete: boolean;
}

export interface InspectorOptions {
  readonly promises: Promises;
  readonly report: (invariant: Invariant, replica: string, message: string) => void;
}

/** More timers than these, beside those of heartbeats that are being answered, are a leak. */
const MOST_TIMERS = 6;

/** Compares what replicas answer with what the models say. */
export class Inspector {
  readonly #options: InspectorOptions;
  readonly #etags = new Map<string, string>();
  readonly #bodies = new Map<string, string>();
  /** The ETags after the healing, by the table that they are of. */
  readonly #settled = new Map<string, string>();

  /** Stands for all that was answered, to tell whether two runs were the same. */
  digest = 0n;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  /** Looks at all that there is of a replica: its lists, its promises, and at how much it has under way. */
  lookAt(replica: ReplicaPlan, process: Process): void {
    this.lists(replica, process);
    this.promises(replica, process);
    const { machine, requests, waiting, waiters } = process;
    if (machine.timers > MOST_TIMERS + requests + waiting) {
      this.#options.report("bounds", replica.name, `${machine.timers} timers wait`);
    }
    if (waiters !== waiting) {
      this.#options.report("bounds", replica.name, `${waiters} wait, and not ${waiting}`);
    }
  }

  lists(replica: ReplicaPlan, process: Process): void {
    this.pools(replica, process, process.get("pools"));
    if (process.imports !== undefined) this.routers(replica, process, process.get("routers"));
  }

  pools(replica: ReplicaPlan, process: Process, answer: Answer): void {
    const report = (invariant: Invariant, message: string) =>
      this.#options.report(invariant, replica.name, message);
    const { store, imports } = process;
    if ((answer.status === 503) === (store.isReady() && imports?.isSynced !== false)) {
      report("ready", `GET /pools gave ${answer.status}`);
      return;
    }
    if (answer.status === 503) return;
    const { body, isComplete } = poolsOf(process);
    const fits = (complete: boolean) => answer.body === withComplete(body, complete);
    if (isComplete === undefined ? !fits(true) && !fits(false) : !fits(isComplete)) {
      this.#explain(answer.body, body, isComplete, report);
    }
    this.#etag(answer, report);
  }

  /** What a list should be, by the models alone; undefined where that can't be told. */
  expected(path: Path, process: Process): string | undefined {
    if (path === "routers") return process.imports?.join(sorted(process.store.live())).routers;
    const { body, isComplete } = poolsOf(process);
    return isComplete === undefined ? undefined : withComplete(body, isComplete);
  }

  routers(replica: ReplicaPlan, process: Process, answer: Answer): void {
    const report = (invariant: Invariant, message: string) =>
      this.#options.report(invariant, replica.name, message);
    const { store, imports } = process;
    if (imports === undefined) return;
    if ((answer.status === 503) === imports.isSynced) {
      report("ready", `GET /routers gave ${answer.status}`);
    }
    if (answer.status === 503) return;
    const expected = imports.join(sorted(store.live())).routers;
    if (answer.body !== expected) report("content", `${answer.body} is not ${expected}`);
    this.#etag(answer, report);
  }

  /** An answer is 304 where the router has just that list, and only there. */
  condition(replica: ReplicaPlan, ifNoneMatch: string | undefined, { status, etag }: Answer): void {
    if (status === 503 || (status === 304) === (etag === ifNoneMatch)) return;
    this.#options.report(
      "etag",
      replica.name,
      `${status} for ${etag} to one who has ${ifNoneMatch}`,
    );
  }

  /** After the faults, every list holds just the pools that are alive, and is complete. */
  expectTruth(plan: Plan, replicas: readonly Replica[], server: ApiServer): void {
    const alive = plan.pools.filter((pool) => isAlive(plan, pool, plan.faultsForMs));
    const truth = alive.map((pool) => membersOf(registrationOf(pool))).sort();
    const slices = versionsOf(server.slices());
    for (const replica of replicas) {
      const { name } = replica.plan;
      const report = (message: string) => this.#options.report("healing", name, message);
      const { process } = replica;
      if (process === undefined) continue;
      this.lookAt(replica.plan, process);
      // They were made by `JSON.stringify` of registrations.
      const live = [...process.store.live().values()].map(
        (json) => JSON.parse(json) as Registration,
      );
      const members = live.map(membersOf).sort();
      if (members.join() !== truth.join()) report(`live are ${members}, and not ${truth}`);
      const shown = process.imports && versionsOf(process.imports.slices());
      if (shown !== undefined && shown !== slices) report(`the slices are ${shown}, not ${slices}`);
      const { status, etag, body } = process.get("pools");
      if (status !== 200 || !body.endsWith("true}")) report(`GET /pools gives ${status} ${body}`);
      // One table, one list; and nothing moves any more.
      const whose = plan.store === "dynamodb" ? "all" : name;
      const settled = this.#settled.get(whose) ?? etag;
      if (settled !== etag) report(`the list of ${whose} is not the same for all, or moves`);
      this.#settled.set(whose, etag);
    }
  }

  /** Says in the words of an invariant how a list differs from the one that was expected. */
  #explain(
    body: string,
    expected: string,
    isComplete: boolean | undefined,
    report: (invariant: Invariant, message: string) => void,
  ): void {
    const [is, should] = [listOf(body), listOf(expected)];
    const names = (list: List) => list.pools.map(({ key }) => Object.values(key).join("/"));
    const [listed, due] = [names(is), names(should)];
    const missing = due.filter((name) => !listed.includes(name));
    const extra = listed.filter((name) => !due.includes(name));
    if (missing.length > 0) report("live stays", `${missing} should be listed`);
    else if (extra.length > 0) report("dead goes", `${extra} should not be listed`);
    else if (is.complete === !isComplete) report("complete", `complete is ${is.complete}`);
    else report("content", `${body} is not ${expected}`);
  }

  #etag({ body, etag }: Answer, report: (invariant: Invariant, message: string) => void): void {
    this.digest = Bun.hash.xxHash64(etag, this.digest);
    const known = this.#etags.get(body);
    if (known !== undefined && known !== etag)
      report("etag", `one content had ${known} and ${etag}`);
    const other = this.#bodies.get(etag);
    if (other !== undefined && other !== body) report("etag", `${etag} stands for two contents`);
    this.#etags.set(body, etag);
    this.#bodies.set(etag, body);
  }

  /** Checks what the model says by what was promised. */
  promises(replica: ReplicaPlan, process: Process): void {
    const { promises, report } = this.#options;
    if (!process.store.isReady()) return;
    const live = process.store.live();
    const glance = process.glance();
    for (const id of promises.mustBeLive(glance)) {
      if (live.has(id)) continue;
      report("live stays", replica.name, `${id} was acknowledged, and its lease goes on`);
    }
    for (const id of live.keys()) {
      if (promises.mayBeLive(id, glance)) continue;
      report("dead goes", replica.name, `${id} was last renewed too long ago`);
    }
  }
}

/** The pools that a replica should list, as if that were complete, and whether it should be. */
function poolsOf({ store, imports }: Process): { body: string; isComplete: boolean | undefined } {
  const registrations = sorted(store.live());
  if (imports === undefined) {
    return { body: registered(registrations), isComplete: store.isComplete() };
  }
  const isComplete = store.isComplete() && imports.isCurrent();
  return { body: imports.join(registrations).pools, isComplete };
}

function withComplete(body: string, isComplete: boolean): string {
  return isComplete ? body : `${body.slice(0, -"true}".length)}false}`;
}

function versionsOf(slices: readonly EndpointSlice[]): string {
  return slices
    .map((slice) => `${nameOf(slice)}@${slice.metadata.resourceVersion}`)
    .sort()
    .join();
}

function listOf(body: string): List {
  // It is a list of ours, or was made as one.
  return JSON.parse(body) as List;
}

/** The registrations in the order of the list. */
function sorted(live: ReadonlyMap<string, string>): string[] {
  return [...live].sort(([a], [b]) => (orderOf(a) < orderOf(b) ? -1 : 1)).map(([, json]) => json);
}

const orders = new Map<string, string>();

/** What sorts a pool: the parts of its key, parted by a character that none of them holds. */
function orderOf(id: string): string {
  let order = orders.get(id);
  if (order === undefined) {
    order = id.replaceAll("/", "\0");
    orders.set(id, order);
  }
  return order;
}

function registered(registrations: readonly string[]): string {
  const pools = registrations.map((json) => `${json.slice(0, -1)},"relay_identities":[]}`);
  return `{"pools":[${pools}],"complete":true}`;
}
