import { BenchError } from "./errors.ts";
import { Generator } from "./generator.ts";
import { CONNECTIONS } from "./load.ts";
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

/**
 * Sends as many requests as the server takes, one at a time on each connection, from one thread, for so
 * many seconds.
 */
export function h2load(requests: Requests, seconds: number): Generator {
  const { server, path, bodyPath, headers, protocol } = requests;
  const args = ["-c", `${CONNECTIONS}`, "-m", "1", "-t", "1", "-D", `${seconds}`];
  if (protocol === "h1") args.push("--h1");
  for (const [name, value] of Object.entries(headers)) args.push("-H", `${name}: ${value}`);
  if (bodyPath !== undefined) args.push("-d", bodyPath);

  return new Generator(server, ["h2load", ...args, `${server.url}${path}`], (output) => {
    const [, done, succeeded] =
      /(\d+) done, (\d+) succeeded, 0 failed, 0 errored/.exec(output) ?? [];
    const ok = /^status codes: (\d+) 2xx/m.exec(output)?.[1];
    if (done === undefined || succeeded !== done || !(Number(ok) >= Number(done))) {
      throw new BenchError(`h2load failed on ${server.url}: ${output}`);
    }
    return Number(done);
  });
}
