import { LOAD_CORE, pinned } from "./pin.ts";
import type { Server } from "./server.ts";

export interface Rates {
  /** Requests for each second of CPU time that the server took. */
  readonly perCoreSecond: number;
  /** Requests for each second that the generator ran: less, where others wanted the CPU as well. */
  readonly perSecond: number;
}

/** A load generator, which is a program of its own, at work on a server. It can be held for a while. */
export class Generator {
  readonly #server: Server;
  readonly #requestsIn: (output: string) => number;
  readonly #cpuSecsBefore: number;
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  #resumedMs = performance.now();
  #ranMs = 0;

  /** Starts it. `requestsIn` finds in what it prints how many requests it made; it throws where any failed. */
  constructor(server: Server, command: string[], requestsIn: (output: string) => number) {
    this.#server = server;
    this.#requestsIn = requestsIn;
    this.#cpuSecsBefore = server.cpuSecs();
    this.#child = Bun.spawn(pinned(LOAD_CORE, command), {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  hold(): void {
    this.#child.kill("SIGSTOP");
    this.#ranMs += performance.now() - this.#resumedMs;
  }

  resume(): void {
    this.#resumedMs = performance.now();
    this.#child.kill("SIGCONT");
  }

  /** Waits until it has ended. */
  async rates(): Promise<Rates> {
    const { stdout, stderr } = this.#child;
    const [output, complaint] = await Promise.all([stdout.text(), stderr.text()]);
    this.#ranMs += performance.now() - this.#resumedMs;
    const requests = this.#requestsIn(output + complaint);
    const cpuSecs = this.#server.cpuSecs() - this.#cpuSecsBefore;
    return { perCoreSecond: requests / cpuSecs, perSecond: requests / (this.#ranMs / 1000) };
  }
}
