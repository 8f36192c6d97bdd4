import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Directory } from "../directory/directory.ts";
import type { DirectoryFacts } from "../directory/facts.ts";
import type { PoolFacts } from "../directory/pool-facts.ts";
import type { Coding } from "../directory/representation.ts";
import { compareIds } from "../pools/pool.ts";
import type { TableFacts } from "../registrations/store.ts";
import type { Clock } from "../runtime/clock.ts";
import { limits } from "../runtime/limits.ts";
import { SharedWork } from "../runtime/shared-work.ts";
import { sortInTurns, Turns } from "../runtime/turns.ts";
import type { Answer } from "./answer.ts";
import { chooseCoding } from "./negotiate.ts";

/** What is said of the service itself. */
export interface ServiceFacts {
  readonly version: string;
  readonly mode: string;
  readonly store: string;
  /** When it was started, on the monotonic clock and in milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly startedAtWallMs: number;
}

export interface ExplainerOptions {
  readonly directory: Directory;
  readonly service: ServiceFacts;
  readonly clock: Clock;
}

/** Steps of a turn: a few milliseconds. To find a pool is a step, and so is to compare two. */
const TURN_STEPS = 10_000;
/** Steps that it takes to look at a pool and to write down what is known of it. */
const POOL_STEPS = 25;
/** Bytes that are copied in the time of a step. */
const BYTES_A_STEP = 100;
/** Answers `GET /explain`. */
export class Explainer {
  readonly #directory: Directory;
  readonly #service: ServiceFacts;
  readonly #clock: Clock;
  readonly #explanations: SharedWork<Explanation>;

  constructor({ directory, service, clock }: ExplainerOptions) {
    this.#directory = directory;
    this.#service = service;
    this.#clock = clock;
    this.#explanations = new SharedWork(clock, async () => new Explanation(await this.#write()));
  }

  /** The answer to a request. */
  async answer(request: Request): Promise<Answer> {
    const explanation = await this.#explanations.ask();
    const coding = chooseCoding(request, explanation);
    const headers = new Headers({
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      Vary: "Accept-Encoding",
    });
    if (coding !== "identity") headers.set("Content-Encoding", coding);
    return { status: 200, headers, body: await explanation.in(coding) };
  }

  async #write(): Promise<Uint8Array<ArrayBuffer>> {
    const turns = new Turns(this.#clock, TURN_STEPS);
    const { known, unknown } = await this.#knownPools(turns);
    const sorted = await sortInTurns(known, compareIds, turns);
    const { chunks, unwritten } = await this.#writePools(sorted, turns);
    const leftOut = unknown + unwritten;
    const facts = this.#directory.facts();
    const rest = {
      ...(leftOut === 0 ? {} : { pools_left_out: leftOut }),
      slices: slicesOf(facts),
      table: tableOf(facts.table, this.#clock.monotonicMs()),
    };
    chunks.unshift(Buffer.from(`{"service":${JSON.stringify(this.#describe(facts))},"pools":[`));
    chunks.push(Buffer.from(`],${JSON.stringify(rest).slice(1)}`));
    return await joined(chunks, turns);
  }

  #describe({ incompleteReasons }: DirectoryFacts) {
    const { version, mode, store, startedAtMs, startedAtWallMs } = this.#service;
    return {
      version,
      mode,
      store,
      started_at: new Date(startedAtWallMs).toISOString(),
      uptime_s: secs(this.#clock.monotonicMs() - startedAtMs),
      complete: incompleteReasons.length === 0,
      reasons: incompleteReasons,
    };
  }

  /** The sort keys of the pools to tell of, and how many there are besides. */
  async #knownPools(turns: Turns) {
    const known = new Set<string>();
    let unknown = 0;
    for (const id of this.#directory.knownPools()) {
      // Some are known from more than one thing.
      if (known.size < limits.explainedPools) known.add(id);
      else if (!known.has(id)) unknown += 1;
      if (turns.spend(1)) await turns.next();
    }
    return { known: [...known], unknown };
  }

  /** The JSON of the pools, a chunk for each turn; a pool is told of as it is in its turn. */
  async #writePools(known: readonly string[], turns: Turns) {
    const chunks: Buffer[] = [];
    let texts: string[] = [];
    let [bytes, unwritten] = [0, 0];
    const flush = () => {
      if (texts.length === 0) return;
      const chunk = Buffer.from(`${bytes === 0 ? "" : ","}${texts.join(",")}`);
      bytes += chunk.length;
      chunks.push(chunk);
      texts = [];
    };
    for (const id of known) {
      if (bytes > limits.explainedBytes) {
        unwritten += 1;
        continue;
      }
      const facts = this.#directory.poolFacts(id);
      if (facts !== undefined) texts.push(JSON.stringify(poolOf(facts)));
      if (!turns.spend(POOL_STEPS)) continue;
      flush();
      await turns.next();
    }
    flush();
    return { chunks, unwritten };
  }
}

/** The chunks as one: tens of megabytes are copied in turns as well. */
async function joined(chunks: readonly Uint8Array[], turns: Turns) {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
    if (turns.spend(chunk.length / BYTES_A_STEP)) await turns.next();
  }
  return bytes;
}

/** The body of an answer, in each coding that somebody asks for. */
export class Explanation {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #coded = new Map<Coding, Promise<Uint8Array<ArrayBuffer>>>();

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.bytes = bytes;
  }

  get size(): number {
    return this.bytes.length;
  }

  /** The body in `coding`, made by another thread when it is first asked for. */
  in(coding: Coding): Promise<Uint8Array<ArrayBuffer>> {
    let coded = this.#coded.get(coding);
    if (coded === undefined) {
      coded = code(this.bytes, coding);
      this.#coded.set(coding, coded);
    }
    return coded;
  }
}

async function code(bytes: Uint8Array<ArrayBuffer>, coding: Coding) {
  switch (coding) {
    case "identity":
      return bytes;
    case "gzip":
      return new Uint8Array(await promisify(gzip)(bytes, { level: 1 }));
    case "zstd":
      return new Uint8Array(await Bun.zstdCompress(bytes, { level: 1 }));
  }
}

function poolOf(facts: PoolFacts) {
  const { key, listed, reasons, registeredMsAgo, leaseLeftMs, disagreements } = facts;
  return {
    key,
    listed,
    reasons,
    last_registered_s_ago: secs(registeredMsAgo),
    lease_left_s: secs(leaseLeftMs),
    written_in: facts.writtenIn,
    relays_ready: facts.relaysReady,
    frontends_ready: facts.frontendsReady,
    disagreements,
  };
}

function slicesOf({ slices }: DirectoryFacts) {
  return slices === null ? null : { used: slices.used, left_out: slices.leftOut };
}

function tableOf(table: TableFacts | null, nowMs: number) {
  if (table === null) return null;
  const { lastRead, lastError } = table;
  return {
    last_read_s_ago: secs(lastRead === null ? null : nowMs - lastRead.beganAtMs),
    last_read_took_ms: lastRead === null ? null : Math.round(lastRead.tookMs),
    items: lastRead?.items ?? null,
    pages: lastRead?.pages ?? null,
    last_error: lastError,
  };
}

/** Milliseconds as seconds with a fraction. */
function secs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms) / 1000;
}
