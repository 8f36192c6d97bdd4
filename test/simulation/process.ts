import type { Directory } from "../../src/directory/directory.ts";
import { ImportedDirectory } from "../../src/directory/imported.ts";
import { RegisteredDirectory } from "../../src/directory/registered.ts";
import type { Representation } from "../../src/directory/representation.ts";
import { type Client, Waiters } from "../../src/directory/waiters.ts";
import { listAnswer } from "../../src/http/respond.ts";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import { Reflector } from "../../src/kubernetes/reflector.ts";
import { parseRegistration } from "../../src/pools/parse.ts";
import { type Registration, sortKey } from "../../src/pools/pool.ts";
import { DynamoStore } from "../../src/registrations/dynamodb/store.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import type { LivePools, RegistrationStore } from "../../src/registrations/store.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import type { Log } from "../../src/runtime/log.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { ROUTERS } from "../support/joined-lists.ts";
import type { ApiServer } from "./api-server.ts";
import type { GlobalTable } from "./global-table.ts";
import type { Machine } from "./machine.ts";
import { DynamoModel } from "./model/dynamo-model.ts";
import { ImportsModel } from "./model/imports-model.ts";
import { MemoryModel } from "./model/memory-model.ts";
import type { Glance, Promises } from "./model/promises.ts";
import type { StoreModel } from "./model/store-model.ts";
import type { Plan, ReplicaPlan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";
import { SliceClient } from "./slice-client.ts";
import { TableClient } from "./table-client.ts";
import type { Invariant } from "./violation.ts";

export interface ProcessOptions {
  readonly plan: Plan;
  readonly replica: ReplicaPlan;
  readonly scheduler: Scheduler;
  readonly machine: Machine;
  readonly random: Random;
  readonly table: GlobalTable;
  readonly server: ApiServer;
  readonly promises: Promises;
  readonly log: Log;
  readonly report: (invariant: Invariant, message: string) => void;
}

/** A list. */
export type Path = "pools" | "routers";

/** An answer to a `GET` of a list. */
export interface Answer {
  readonly status: number;
  readonly etag: string;
  /** What the list is, whether or not it was sent. */
  readonly body: string;
}

/**
 * The real core of one replica, put together as `startService` does it, from its start to its end, and
 * beside it the model of what it should hold.
 */
export class Process {
  readonly machine: Machine;
  readonly imports: ImportsModel | undefined;
  readonly slices: SliceClient | undefined;
  readonly store: StoreModel;
  /** What the table knows of it, with that store. */
  readonly table: DynamoModel | undefined;
  readonly #options: ProcessOptions;
  readonly #directory: Directory;
  readonly #bodies = new WeakMap<Representation, string>();
  readonly #waiters: Waiters;
  /** Heartbeats that are being answered. */
  requests = 0;
  /** Routers that wait for a list to change. */
  waiting = 0;
  /** Whether it has been told to end. */
  isEnding = false;

  constructor(options: ProcessOptions) {
    this.#options = options;
    const { plan, machine, report } = options;
    this.machine = machine;
    const runClock = new RunClock(machine, () => {});
    if (plan.store === "dynamodb") {
      this.table = new DynamoModel({
        settings: plan.settings,
        region: options.replica.region,
        machine,
        nowMs: () => options.scheduler.nowMs,
        report,
      });
    }
    this.store = this.table ?? new MemoryModel(plan.settings, machine);
    const openStore = (livePools: LivePools) => this.#storeOf(livePools, runClock);
    if (plan.mode === "registrations") {
      this.#directory = new RegisteredDirectory(openStore, [], machine);
    } else {
      const rule = plan.mode === "karmada" ? karmada : mcs;
      const model = new ImportsModel(rule, machine);
      const api = new SliceClient({ ...options, replica: options.replica.name, model });
      this.imports = model;
      this.slices = api;
      this.#directory = new ImportedDirectory({
        openStore,
        openSlices: (sink) => new Reflector({ api, sink, clock: machine, log: options.log }),
        rule,
        routers: { ...ROUTERS, port: "http" },
        clock: machine,
        log: options.log,
      });
    }
    this.#waiters = new Waiters(this.#directory, machine);
    runClock.start(() => {
      this.store.beat();
      this.#directory.expire();
    });
    this.#directory.open().catch((error) => report("errors", `open: ${error}`));
  }

  /** Answers a heartbeat as `POST /pools` does. */
  post(registration: Registration, text: string): void {
    const { plan, machine, promises, report, scheduler, replica } = this.#options;
    const id = sortKey(registration.key);
    const receivedAtMs = scheduler.nowMs;
    const wallErrorMs = machine.wallErrorMs();
    promises.tried(id, this.glance());
    const registering = this.store.register(id, registration);
    const mostMs = machine.monotonicMs() + plan.settings.heartbeatSecs * 500;
    const acknowledge = () => {
      if (machine.monotonicMs() > mostMs) report("deadlines", `${id} was acknowledged too late`);
      registering.acknowledged();
      promises.acknowledged({
        id,
        process: this,
        region: this.table === undefined ? undefined : replica.region,
        receivedAtMs,
        acknowledgedAtMs: scheduler.nowMs,
        wallErrorMs,
        commit: this.table?.lastCommit ?? 0,
      });
    };
    const refuse = (error: unknown) => {
      if (!(error instanceof ServiceError)) report("errors", `POST: ${error}`);
    };
    try {
      if (this.#directory.renew(text)) {
        acknowledge();
        return;
      }
      const parsed = parseRegistration(text);
      if (parsed === undefined) throw new Error(`it says no registration: ${text}`);
      const result = this.#directory.register(parsed, text);
      if (result === undefined) {
        acknowledge();
        return;
      }
      this.requests += 1;
      result
        .finally(() => {
          this.requests -= 1;
        })
        .then(acknowledge, refuse);
    } catch (error) {
      refuse(error);
    }
  }

  /** Answers a `GET` of a list as the routes do. */
  get(path: Path, ifNoneMatch?: string): Answer {
    try {
      const list = this.#directory[path]();
      if (ifNoneMatch === undefined) return this.answerOf(list);
      const { status } = listAnswer(new Request("http://replica/"), ifNoneMatch, list);
      return { ...this.answerOf(list), status };
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#options.report("errors", `GET: ${error}`);
      return { status: 503, etag: "", body: "" };
    }
  }

  /** The answer to one who does not have it. */
  answerOf(list: Representation): Answer {
    return { status: 200, etag: list.etags.identity, body: this.#bodyOf(list) };
  }

  /**
   * Lets a router wait for a list to change, as the routes do.
   *
   * @throws ServiceError `unavailable` while the list can't be told yet
   */
  hold(path: Path, client: Client): void {
    this.#waiters[path].hold({
      ...client,
      answer: (list) => {
        this.waiting -= 1;
        client.answer(list);
      },
    });
    this.waiting += 1;
  }

  /** How many routers it lets wait. */
  get waiters(): number {
    return this.#waiters.pools.count + this.#waiters.routers.count;
  }

  #bodyOf(list: Representation): string {
    let body = this.#bodies.get(list);
    if (body === undefined) {
      body = new TextDecoder().decode(list.bytes);
      this.#bodies.set(list, body);
    }
    return body;
  }

  /** What has to be known of it to tell which pools must be live to it. */
  glance(): Glance {
    const { scheduler, machine, replica, table } = this.#options;
    return {
      process: this,
      region: this.table === undefined ? undefined : replica.region,
      nowMs: scheduler.nowMs,
      wallMs: machine.wallMs(),
      // What had lapsed by the clock of the last read is forgotten until the next.
      wallErrorMs: Math.max(machine.wallErrorMs(), this.table?.readWallErrorMs ?? 0),
      lastReadBeganAtMs: this.table?.lastReadBeganAtMs,
      setBackAt: (id) => table.setBackAt(replica.region, id),
      pausedMs: this.store.pausedMs(),
    };
  }

  /** Ends in good order, as after SIGTERM. */
  close(): void {
    this.isEnding = true;
    this.#waiters.end();
    this.#directory.close();
  }

  #storeOf(livePools: LivePools, runClock: RunClock): RegistrationStore {
    const { plan, replica, machine, log } = this.#options;
    const { leaseSecs, heartbeatSecs, pollSecs, graceSecs, skewSecs } = plan.settings;
    const common = { leaseSecs, clock: machine, runClock, log, livePools };
    if (this.table === undefined) return new MemoryStore(common);
    return new DynamoStore({
      ...common,
      table: new TableClient({ ...this.#options, listener: this.table }),
      region: replica.region,
      heartbeatIntervalSecs: heartbeatSecs,
      pollIntervalSecs: pollSecs,
      replicationGraceSecs: graceSecs,
      skewSecs,
    });
  }
}
