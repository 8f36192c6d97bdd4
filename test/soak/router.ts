import { brief, type PoolList, poolList } from "../support/relay.ts";
import type { Findings } from "./findings.ts";
import type { Group } from "./group.ts";
import { judge } from "./judge.ts";
import type { Random } from "./random.ts";
import type { Replica } from "./replica.ts";
import { LONGEST_FAULT_MS } from "./times.ts";

/** How a router asks. */
export interface RouterHabits {
  readonly isWaiting: boolean;
  readonly coding: "identity" | "gzip" | "zstd";
}

/** Which body each ETag has stood for, whichever replica said it. */
export class Bodies {
  static readonly #most = 20_000;
  readonly #byEtag = new Map<string, string>();
  readonly #byBody = new Map<string, string>();

  /** Notes a pair; says what is wrong where one of them was seen with another. */
  note(etag: string, body: string, coding: string): string | undefined {
    const content = `${coding} ${Bun.hash(body)}`;
    const [knownBody, knownEtag] = [this.#byEtag.get(etag), this.#byBody.get(content)];
    if (this.#byEtag.size > Bodies.#most) {
      this.#byEtag.clear();
      this.#byBody.clear();
    }
    this.#byEtag.set(etag, content);
    this.#byBody.set(content, etag);
    if (knownBody !== undefined && knownBody !== content) return `${etag} stood for another body`;
    if (knownEtag !== undefined && knownEtag !== etag)
      return `the body of ${etag} had ${knownEtag}`;
    return undefined;
  }
}

/** A Global Router that polls one replica, and has what it is told judged. */
export class Router {
  readonly #replica: Replica;
  readonly #group: Group;
  readonly #habits: RouterHabits;
  readonly #random: Random;
  readonly #findings: Findings;
  readonly #bodies: Bodies;
  #etag = "";
  #list: PoolList | undefined;

  constructor(
    replica: Replica,
    group: Group,
    habits: RouterHabits,
    surroundings: {
      readonly random: Random;
      readonly findings: Findings;
      readonly bodies: Bodies;
    },
  ) {
    this.#replica = replica;
    this.#group = group;
    this.#habits = habits;
    this.#random = surroundings.random;
    this.#findings = surroundings.findings;
    this.#bodies = surroundings.bodies;
  }

  /** Asks once. */
  async poll(): Promise<void> {
    const { isWaiting, coding } = this.#habits;
    const waitSecs = isWaiting && this.#etag !== "" ? Math.ceil(this.#random.between(1, 8)) : 0;
    const before = this.#replica.process;
    const beganAtMs = Date.now();
    let response: Response;
    let body: string;
    try {
      response = await fetch(`${this.#replica.url}/pools`, {
        headers: {
          "Accept-Encoding": coding,
          ...(this.#etag === "" ? {} : { "If-None-Match": this.#etag }),
          ...(waitSecs === 0 ? {} : { Prefer: `wait=${waitSecs}` }),
        },
        signal: AbortSignal.timeout(LONGEST_FAULT_MS + waitSecs * 1000),
      });
      body = await response.text();
    } catch {
      this.#findings.count("polls without an answer");
      return;
    }
    const answeredAtMs = Date.now();
    const { status } = response;
    this.#findings.count(`polls answered with ${status}`);
    if (status === 503) return;
    this.#findings.check(status === 200 || (status === 304 && this.#etag !== ""), () => {
      return `${this.#replica.name} answered a poll with ${status} ${brief(body)}`;
    });
    const etag = response.headers.get("etag") ?? "";
    if (status === 304) {
      this.#findings.check(etag === this.#etag, () => {
        return `${this.#replica.name} said of ${this.#etag} with 304 that it is ${etag}`;
      });
    } else {
      const fault = this.#bodies.note(
        etag,
        body,
        // Short bodies are sent as they are.
        response.headers.get("content-encoding") ?? "identity",
      );
      this.#findings.check(fault === undefined && etag !== this.#etag, () => {
        return `${this.#replica.name}: ${fault ?? `200 though ${etag} was known`}`;
      });
      this.#etag = etag;
      this.#list = poolList(body);
    }
    if (this.#list === undefined) return;
    judge(
      {
        replica: this.#replica,
        process: before === this.#replica.process ? before : undefined,
        sentAtMs: beganAtMs,
        answeredAtMs,
        list: this.#list,
      },
      this.#group,
      this.#findings,
    );
  }
}
