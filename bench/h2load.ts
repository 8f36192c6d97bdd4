import { BenchError } from "./errors.ts";
import { CONNECTIONS, type Rates } from "./load.ts";
import { LOAD_CORE, pinned } from "./pin.ts";
import type { Server } from "./server.ts";

/** What h2load sends, over and over. */
export interface Requests {
  readonly server: Server;
  readonly path: string;
  /** A file with the body to post; `GET` where it is left out. */
  readonly bodyPath?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** h2c is HTTP/2 without TLS, as gRPC takes it. */
  readonly protocol: "h1" | "h2c";
}

/** Sends as many requests as the server takes: one at a time on each connection, from one thread. */
export async function h2load(requests: Requests, seconds: number): Promise<Rates> {
  const { server, path, bodyPath, headers, protocol } = requests;
  const args = ["-c", `${CONNECTIONS}`, "-m", "1", "-t", "1", "-D", `${seconds}`];
  if (protocol === "h1") args.push("--h1");
  for (const [name, value] of Object.entries(headers)) args.push("-H", `${name}: ${value}`);
  if (bodyPath !== undefined) args.push("-d", bodyPath);

  const cpuBefore = server.cpuSecs();
  const command = pinned(LOAD_CORE, ["h2load", ...args, `${server.url}${path}`]);
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
  const [output, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const cpuSecs = server.cpuSecs() - cpuBefore;

  const perSecond = /^finished in .*, ([\d.]+) req\/s/m.exec(output)?.[1];
  const [, done, succeeded] = /(\d+) done, (\d+) succeeded, 0 failed, 0 errored/.exec(output) ?? [];
  const ok = /^status codes: (\d+) 2xx/m.exec(output)?.[1];
  if (perSecond === undefined || done === undefined || succeeded !== done || ok !== done) {
    throw new BenchError(`h2load failed on ${server.url}: ${output}${complaint}`);
  }
  return { perCoreSecond: Number(done) / cpuSecs, perSecond: Number(perSecond) };
}
