import { readFileSync } from "node:fs";
import { inTurn } from "../support/dynamodb.ts";
import type { FaultProxy } from "../support/fault-proxy.ts";
import { freePort, type Launch, Service } from "../support/service.ts";
import type { Findings } from "./findings.ts";
import type { TcpGate } from "./tcp-gate.ts";

export interface ReplicaParts {
  readonly name: string;
  readonly command: readonly string[];
  readonly launch: Launch;
  /** Between it and the table; undefined with the memory store. */
  readonly proxy?: FaultProxy;
  /** Between it and the API server; undefined in registrations mode. */
  readonly gate?: TcpGate;
  /** Whether it is never ended, so that its memory can be watched. */
  readonly isSteady: boolean;
}

/** What is known of a replica. Times are those of the wall clock. */
export interface ReplicaFacts {
  readonly name: string;
  readonly url: string;
  /** Which process answers now; undefined where none is sure to. */
  readonly process: number | undefined;
  /** Before its present process was there. */
  readonly startedAtMs: number;
  readonly isStopped: boolean;
  /** When its process went on after it was last stopped; 0 for never. */
  readonly resumedAtMs: number;
  /** When it last went on after a pause that it must have noticed; 0 for never. */
  readonly wokeAtMs: number;
  /** For how long it was stopped since some moment. */
  pausedMs(sinceMs: number): number;
  /** For how long it found itself that it could not run, since some moment. */
  noticedPausesMs(sinceMs: number): number;
}

interface Pause {
  readonly fromMs: number;
  /** Undefined while it goes on. */
  toMs: number | undefined;
}

/** A replica at an address that stays, and what is done to its process. */
export class Replica implements ReplicaFacts {
  readonly parts: ReplicaParts;
  readonly url: string;
  readonly #port: number;
  readonly #findings: Findings;
  readonly #pauses: Pause[] = [];
  #service: Service | undefined;
  #readLines = 0;
  readonly #noticed: { readonly atMs: number; readonly ms: number }[] = [];
  /** Counts the processes that it has had. */
  #instance = 0;
  startedAtMs = 0;
  /** Whether its process is about to end, or has. */
  isEnding = true;
  /** Whether something is being done to its process. */
  isBusy = false;

  private constructor(parts: ReplicaParts, port: number, findings: Findings) {
    this.parts = parts;
    this.#port = port;
    this.#findings = findings;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(parts: ReplicaParts, findings: Findings): Promise<Replica> {
    const replica = new Replica(parts, await freePort(), findings);
    await replica.#start();
    return replica;
  }

  get name(): string {
    return this.parts.name;
  }

  get isStopped(): boolean {
    return this.#pauses.at(-1)?.toMs === undefined && this.#pauses.length > 0;
  }

  get resumedAtMs(): number {
    return this.#pauses.at(-1)?.toMs ?? 0;
  }

  pausedMs(sinceMs: number): number {
    let sum = 0;
    for (const { fromMs, toMs = Date.now() } of this.#pauses) {
      sum += Math.max(0, toMs - Math.max(fromMs, sinceMs));
    }
    return sum;
  }

  noticedPausesMs(sinceMs: number): number {
    let sum = 0;
    for (const { atMs, ms } of this.#noticed) if (atMs > sinceMs) sum += ms;
    return sum;
  }

  get process(): number | undefined {
    return this.isEnding ? undefined : this.#instance;
  }

  get wokeAtMs(): number {
    return this.#pauses.findLast(({ fromMs, toMs = fromMs }) => toMs - fromMs > 1300)?.toMs ?? 0;
  }

  /** Everything that its present process has logged. */
  get log(): string {
    return this.#service?.stderr ?? "";
  }

  async pause(ms: number): Promise<void> {
    const pause: Pause = { fromMs: Date.now(), toMs: undefined };
    this.#pauses.push(pause);
    this.#service?.kill("SIGSTOP");
    await Bun.sleep(ms);
    pause.toMs = Date.now();
    this.#service?.kill("SIGCONT");
  }

  async killAndRestart(downMs: number): Promise<void> {
    this.isEnding = true;
    this.#service?.kill("SIGKILL");
    await this.#service?.ended();
    this.readLog();
    await Bun.sleep(downMs);
    await this.#start();
  }

  async terminateAndRestart(downMs: number): Promise<void> {
    await this.terminate();
    await Bun.sleep(downMs);
    await this.#start();
  }

  /** Ends it as Kubernetes does. */
  async terminate(): Promise<void> {
    this.isEnding = true;
    const ending = await this.#service?.stop(30_000);
    this.readLog();
    this.#findings.check(ending?.status === 0, () => {
      return `${this.name} ended with ${JSON.stringify(ending)} on SIGTERM`;
    });
  }

  /** Looks at what it has logged since the last look: an error there is one of its own. */
  readLog(): void {
    const lines = this.#service?.lines ?? [];
    for (; this.#readLines < lines.length; this.#readLines += 1) {
      const line = lines[this.#readLines] ?? "";
      this.#findings.check(/"level":"(DEBUG|INFO|WARN)"/i.test(line), () => {
        return `${this.name} logged: ${line}`;
      });
      const [, pausedSecs] = /"paused_s":([\d.]+)/.exec(line) ?? [];
      if (pausedSecs !== undefined) {
        this.#noticed.push({ atMs: Date.now(), ms: Number(pausedSecs) * 1000 });
        this.#findings.count("pauses that replicas noticed");
      }
    }
  }

  /** Whether its process has ended though nobody has ended it. */
  get hasCrashed(): boolean {
    return !this.isEnding && this.#service?.isRunning !== true;
  }

  /** The memory that it has for itself, without the pages of the file that it runs. */
  anonymousBytes(): number | undefined {
    if (this.#service === undefined) return undefined;
    const rollup = readFileSync(`/proc/${this.#service.pid}/smaps_rollup`, "utf8");
    return Number(/^Anonymous:\s+(\d+) kB$/m.exec(rollup)?.[1]) * 1024;
  }

  async #start(): Promise<void> {
    const { command, launch } = this.parts;
    const args = ["--listen", `127.0.0.1:${this.#port}`, ...(launch.args ?? [])];
    const env = { ...launch.env, DYN_LOGGING_JSONL: "1" };
    const startedAtMs = Date.now();
    this.#service = await inTurn(() => Service.start(command, { args, env }));
    this.#readLines = 0;
    this.#instance += 1;
    this.startedAtMs = startedAtMs;
    this.isEnding = false;
  }
}
