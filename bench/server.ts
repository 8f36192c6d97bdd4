import { readFileSync } from "node:fs";
import { BenchError } from "./errors.ts";
import { pinned, SERVER_CORE } from "./pin.ts";
import type { Programs } from "./programs.ts";

/** How long a server may take to answer for the first time. */
const START_MS = 30_000;

/** A server in a process of its own, which ends with the scope that started it. */
export interface Server extends AsyncDisposable {
  readonly url: string;
  /** From just before the process was made to its first 200. */
  readonly startMs: number;
  /** CPU time that it has taken, in all of its threads. */
  cpuSecs(): number;
  /** Its share of physical memory (PSS). */
  memoryBytes(): number;
}

interface Options {
  /** Whether it is going to be loaded, and so needs a core of its own. */
  readonly ownCore: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** What answers 200 once it serves: `/healthz`, unless said otherwise. */
  readonly healthPath?: string;
  /** Whether the service logs as it does unless told otherwise, which is not shown. */
  readonly usualLogs?: boolean;
  /** What becomes of what it complains about: shown, unless said otherwise. */
  readonly stderr?: "ignore";
}

/** Starts the service with leases that no run outlasts. */
export function startService(
  { service }: Programs,
  options: Options & { readonly args?: readonly string[] },
): Promise<Server> {
  const leases = ["--lease-duration-secs", "86400", "--heartbeat-interval-secs", "3600"];
  const args = [...leases, ...(options.args ?? [])];
  return start((port) => [service, "--listen", `127.0.0.1:${port}`, ...args], options);
}

/** A whole answer to `GET /pools`. */
export interface ListAnswer {
  /** A file with its body. */
  readonly bodyPath: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Starts the peer, and has it give that answer. */
export function startBare(
  { bare }: Programs,
  options: Options & { readonly list?: ListAnswer },
): Promise<Server> {
  const list = options.list && [options.list.bodyPath, JSON.stringify(options.list.headers)];
  return start((port) => [bare, `${port}`, ...(list ?? [])], options);
}

/** Starts a program that serves on the port that it is given. */
export async function start(
  command: (port: number) => string[],
  options: Options,
): Promise<Server> {
  const port = freePort();
  const healthPath = options.healthPath ?? "/healthz";
  const words = command(port);
  const startedMs = performance.now();
  const child = Bun.spawn(options.ownCore ? pinned(SERVER_CORE, words) : words, {
    stdin: "ignore",
    stdout: "ignore",
    // By a pipe, as services have it.
    stderr: options.stderr ?? "pipe",
    // A line for each new pool would bury the figures.
    env: { ...process.env, DYN_LOG: options.usualLogs ? "info" : "error", ...options.env },
  });
  void read(child.stderr, options.usualLogs ? () => {} : (text) => process.stderr.write(text));
  // One that is left over would take CPU time from whatever comes next.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  while (!(await isHealthy(port, healthPath))) {
    if (child.exitCode !== null) throw new BenchError(`${words[0]} does not start`);
    if (performance.now() - startedMs > START_MS) throw new BenchError(`${words[0]} is silent`);
  }
  const startMs = performance.now() - startedMs;
  return {
    url: `http://127.0.0.1:${port}`,
    startMs,
    cpuSecs: () => cpuSecs(child.pid),
    memoryBytes: () => memoryBytes(child.pid),
    async [Symbol.asyncDispose]() {
      process.off("exit", kill);
      kill();
      await child.exited;
    },
  };
}

async function read(
  stream: ReadableStream<Uint8Array> | undefined,
  take: (text: Uint8Array) => void,
): Promise<void> {
  for await (const text of stream ?? []) take(text);
}

function memoryBytes(pid: number): number {
  const kilobytes = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
  return Number(kilobytes?.[1]) * 1024;
}

/** Of the process as a whole: the threads that have ended since are in it. */
function cpuSecs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // Fields are counted from behind the name, which may hold anything: user time, then system time.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SEC;
}

/** Fixed for what Linux shows to programs. */
const TICKS_PER_SEC = 100;

/** A port that nobody serves on. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** Asks once, over a bare socket: an HTTP client's own time would be part of every start. */
function isHealthy(port: number, path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const failed = () => resolve(false);
  const request = `GET ${path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`;
  Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(request),
      data(socket, data) {
        resolve(data.toString().startsWith("HTTP/1.1 200 "));
        socket.end();
      },
      close: failed,
      error: failed,
      connectError: failed,
    },
  }).catch(failed);
  return promise;
}
