import { differences } from "../../src/pools/canonical.ts";
import type { Registration } from "../../src/pools/pool.ts";
import { makeRegistration } from "../support/pools.ts";
import { brief, type ListedPool } from "../support/relay.ts";
import type { Findings } from "./findings.ts";
import type { Random } from "./random.ts";
import type { ReplicaFacts } from "./replica.ts";
import { LATE_MS, SECS } from "./times.ts";

/** A `POST /pools` that was answered with 200. */
export interface Acknowledgement {
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  readonly replica: ReplicaFacts;
  /** Which of the replica's processes it was, where that is sure. */
  readonly process: number | undefined;
}

/** A `POST /pools` without an answer, which may be carried out all the same. */
interface Unanswered {
  readonly atMs: number;
  readonly replica: ReplicaFacts;
}

/** Answers that are old are of no more use. */
const KEPT_MS = 120_000;
const POST_MS = 3000;

/** A pool: what it is, whether its relays register it, and what came of that. */
export class Pool {
  /** What it is registered with now. */
  registration: Registration;
  /** Whether its relays send heartbeats. */
  isAlive = true;
  readonly #versions: Registration[] = [];
  #acknowledgements: Acknowledgement[] = [];
  #unanswered: Unanswered[] = [];
  #lastAnswerMs = 0;
  /** Heartbeats that have been sent and not answered yet. */
  #underWay = 0;

  constructor(name: string) {
    this.registration = makeRegistration({
      key: { cluster_id: "west", namespace: "dynamo", dgd_name: name },
      capabilities: ["aggregated", "chat"],
      model: "version 0",
    });
    this.#versions.push(this.registration);
  }

  get name(): string {
    return this.registration.key.dgd_name;
  }

  change(): void {
    const model = `version ${this.#versions.length}`;
    const workers = this.#versions.length;
    this.registration = { ...this.registration, model, capacity: [{ sku: "H100", workers }] };
    this.#versions.push(this.registration);
  }

  /** Sends a heartbeat to the first replica that takes it, as a relay behind a load balancer does. */
  async beat(replicas: readonly ReplicaFacts[], random: Random, findings: Findings): Promise<void> {
    const { registration } = this;
    const body = JSON.stringify({
      ...registration,
      capabilities: random.shuffled(registration.capabilities),
    });
    this.#underWay += 1;
    for (const replica of replicas.slice(0, 2)) {
      if (await this.#post(replica, body, findings)) break;
    }
    this.#underWay -= 1;
  }

  async #post(replica: ReplicaFacts, body: string, findings: Findings): Promise<boolean> {
    const { process } = replica;
    const sentAtMs = Date.now();
    let status: number;
    let text: string;
    try {
      const response = await fetch(`${replica.url}/pools`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
        signal: AbortSignal.timeout(POST_MS),
      });
      status = response.status;
      text = await response.text();
    } catch {
      findings.count("heartbeats without an answer");
      this.noteUnanswered(replica);
      return false;
    }
    const answeredAtMs = Date.now();
    // A write that is answered with 503 may have been carried out.
    this.#lastAnswerMs = answeredAtMs;
    findings.count(`heartbeats answered with ${status}`);
    findings.check(status === 200 || status === 503, () => {
      return `${replica.name} answered a heartbeat with ${status} ${brief(text)}`;
    });
    if (status !== 200) return false;
    const granted = `{"heartbeat_interval_s":${SECS.heartbeat},"lease_duration_s":${SECS.lease}}`;
    findings.check(text === granted, () => `${replica.name} granted ${brief(text)}`);
    this.noteAcknowledged({ sentAtMs, answeredAtMs, replica, process });
    return true;
  }

  noteAcknowledged(acknowledgement: Acknowledgement): void {
    const { answeredAtMs } = acknowledgement;
    this.#lastAnswerMs = Math.max(this.#lastAnswerMs, answeredAtMs);
    this.#acknowledgements = this.#acknowledgements.filter(
      (each) => each.answeredAtMs > answeredAtMs - KEPT_MS,
    );
    this.#acknowledgements.push(acknowledgement);
  }

  noteUnanswered(replica: ReplicaFacts): void {
    this.#unanswered.push({ atMs: Date.now(), replica });
  }

  /** When the last heartbeat was sent that was acknowledged at `atMs` already; 0 for never. */
  acknowledgedSince(
    atMs: number,
    by?: { readonly replica: ReplicaFacts; readonly process: number },
  ) {
    let sentAtMs = 0;
    for (const each of this.#acknowledgements) {
      const isBy = by === undefined || (each.replica === by.replica && each.process === by.process);
      if (isBy && each.answeredAtMs <= atMs) sentAtMs = Math.max(sentAtMs, each.sentAtMs);
    }
    return sentAtMs;
  }

  /** The last moment at which a heartbeat may have been carried out. */
  lastRenewalMs(): number {
    const nowMs = Date.now();
    // It may have been carried out, though not answered.
    if (this.#underWay > 0) return nowMs;
    let lastMs = this.#lastAnswerMs;
    for (const { atMs, replica } of this.#unanswered) {
      // What was sent to a process that is stopped is carried out when it goes on.
      const mayBeAtMs = replica.isStopped ? nowMs : Math.max(atMs, replica.resumedAtMs) + LATE_MS;
      lastMs = Math.max(lastMs, Math.min(nowMs, mayBeAtMs));
    }
    this.#unanswered = this.#unanswered.filter(({ atMs }) => atMs > nowMs - KEPT_MS);
    return lastMs;
  }

  /** Whether a list shows it as it was registered at some time, or as it is now. */
  isShownBy(listed: ListedPool, { isNow }: { readonly isNow: boolean }): boolean {
    const version = this.#versions.find(({ model }) => model === listed.model);
    if (version === undefined || (isNow && version !== this.registration)) return false;
    // Frontends may be those of the slices, which others look at.
    return differences({ ...version, frontends: [] }, { ...listed, frontends: [] }).length === 0;
  }
}
