import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { within } from "./until.ts";

/** The folder that the commands of the tests are relative to. */
export const projectRoot = resolve(import.meta.dir, "../..");

/** Long enough for anything that should happen at once, on a machine that is busy with other work. */
export const SOON_MS = 20_000;

export interface Launch {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** How a process ended: its exit status, or the signal that ended it. */
export interface Ending {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | number | null;
}

const live = new Set<Process>();

/** Ends every process that is still running, whatever happened to the test that started it. */
export async function endAll(): Promise<void> {
  await Promise.all([...live].map((each) => each[Symbol.asyncDispose]()));
}
// Also where the whole run is cut short.
process.on("exit", () => {
  for (const each of live) each.killAll();
});

/** A process with what it has written so far. */
export class Process implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #outputs: Promise<unknown>;
  readonly startedAtMs = performance.now();
  #stdout = "";
  #stderr = "";

  constructor(command: readonly string[], { args = [], env = {}, cwd = projectRoot }: Launch = {}) {
    this.#child = Bun.spawn([...command, ...args], {
      cwd,
      env: { ...cleanEnvironment(), ...env },
      // A group of its own, so that what it starts can be ended with it.
      detached: true,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    live.add(this);
    this.#outputs = Promise.all([
      collect(this.#child.stdout, (text) => {
        this.#stdout += text;
      }),
      collect(this.#child.stderr, (text) => {
        this.#stderr += text;
      }),
    ]);
  }

  get pid(): number {
    return this.#child.pid;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The lines on standard error so far. */
  get lines(): string[] {
    return this.#stderr.split("\n").filter((line) => line !== "");
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends the process and whatever it started, stopped or not. */
  killAll(): void {
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch {
      // All of them have ended already.
    }
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Waits for the end, and for the last of the output. */
  async ended(deadlineMs = SOON_MS): Promise<Ending> {
    await within(deadlineMs, `the end of process ${this.pid}`, this.#child.exited, () => this.said);
    await within(SOON_MS, "the end of its output", this.#outputs, () => this.said);
    live.delete(this);
    return { status: this.#child.exitCode, signal: this.#child.signalCode };
  }

  /** Waits until standard error has something that matches. */
  async says(pattern: RegExp, deadlineMs = SOON_MS): Promise<RegExpExecArray> {
    const deadline = performance.now() + deadlineMs;
    for (;;) {
      const over = !this.isRunning;
      if (over) await this.#outputs;
      const match = pattern.exec(this.#stderr);
      if (match !== null) return match;
      if (over) throw new Error(`the process ended before it said ${pattern}\n${this.said}`);
      if (performance.now() > deadline) throw new Error(`it never said ${pattern}\n${this.said}`);
      await Bun.sleep(10);
    }
  }

  /** Everything that it wrote, for the message of a failed test. */
  get said(): string {
    return `standard output:\n${this.#stdout}\nstandard error:\n${this.#stderr}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.killAll();
    await this.#child.exited;
    live.delete(this);
  }
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  take: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}

/** Nothing that the developer's own shell has set changes what the service does. */
function cleanEnvironment(): Record<string, string> {
  return { PATH: process.env.PATH ?? "/usr/bin:/bin", HOME: tmpdir() };
}

/** A process that serves. */
export class Service extends Process {
  #url = "";

  /** Where it serves, from the line with which it says so. */
  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  /**
   * Starts the service and waits until it says that it serves, on a free port of 127.0.0.1 unless
   * `args` say otherwise.
   */
  static async start(
    command: readonly string[],
    { args = [], ...rest }: Launch = {},
  ): Promise<Service> {
    const listens = args.some((arg) => /^--listen(=|$)/.test(arg));
    const service = new Service(command, {
      ...rest,
      args: listens ? args : ["--listen", "127.0.0.1:0", ...args],
    });
    try {
      const [, url = ""] = await service.says(/\baddress"?[=:]\s*"?(https?:\/\/[^\s",]+)/);
      service.#url = url;
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Stops it as Kubernetes does, and waits for the end. */
  async stop(deadlineMs?: number): Promise<Ending> {
    this.kill("SIGTERM");
    return await this.ended(deadlineMs);
  }
}

/** The same value for every caller, made when the first one asks: tests that run at once share it. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** What a command that ends by itself wrote, and its exit status. */
export interface Outcome extends Ending {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command that should end by itself. */
export async function run(command: readonly string[], launch?: Launch): Promise<Outcome> {
  await using child = new Process(command, launch);
  const ending = await child.ended();
  return { ...ending, stdout: child.stdout, stderr: child.stderr };
}

/** A folder that is gone after the test. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "discovery-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Below the ports that Linux gives to who asks for any (`ip_local_port_range`), above the well-known. */
const PORTS = { least: 10_240, most: 32_767 } as const;
let nextPort = PORTS.least + Math.floor(Math.random() * (PORTS.most - PORTS.least));

/**
 * A free port of 127.0.0.1, for where the service can't say which it took, or where nobody may take it
 * while it is not in use: it is given once, and never to who asks for any.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = nextPort;
    nextPort = port === PORTS.most ? PORTS.least : port + 1;
    const server = createServer();
    const isFree = await new Promise<boolean>((done) => {
      server.once("error", () => done(false));
      server.listen(port, "127.0.0.1", () => done(true));
    });
    if (!isFree) continue;
    await new Promise((done) => server.close(done));
    return port;
  }
}

/** Calls `action` with each item, a few at a time: the machine may have few cores. */
export async function forEachOf<T>(
  items: readonly T[],
  action: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = items.values();
  const worker = async () => {
    for (const item of waiting) await action(item);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}
