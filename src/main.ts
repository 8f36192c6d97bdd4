import type { ParsedArgs } from "citty";
import { command } from "./cli/command.ts";
import type { Config } from "./cli/config.ts";
import { systemClock } from "./runtime/clock.ts";
import { messageOf, ServiceError } from "./runtime/errors.ts";
import { limits } from "./runtime/limits.ts";
import { LineWriter } from "./runtime/line-writer.ts";
import { createLogs, type Log } from "./runtime/log.ts";
import { oneLine } from "./runtime/text.ts";

const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

// What citty would have read of the line, which nobody asks for.
const UNREAD = { _: [] } as ParsedArgs<never>;

const stderr = new LineWriter(2, systemClock);

await exit(await main(process.argv.slice(2)));

async function exit(status: number): Promise<never> {
  await stderr.flush();
  process.exit(status);
}

/** Reads the flags, serves until a signal, and returns the exit status. */
async function main(rawArgs: string[]): Promise<number> {
  try {
    const cmd = command({ print, serve });
    // Not by citty's `runCommand`: it would read the line in its own way first, with enough work to
    // bring in the optimising compiler, which is 3 MB of memory.
    await cmd.run?.({ cmd, rawArgs, args: UNREAD });
    return 0;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.code === "usage") {
      stderr.write(`error: ${error.message}\n\nFor more information, try '--help'.\n`);
      return 2;
    }
    // It may repeat a path, or what a server said.
    stderr.write(`error: ${oneLine(error.message, limits.startupErrorChars)}\n`);
    return 1;
  }
}

/** Writes to standard output before it resolves, so that exiting loses nothing. */
async function print(text: string): Promise<void> {
  const { writeSync } = await import("node:fs");
  try {
    writeSync(1, `${text}\n`);
  } catch {
    // Whoever wanted to read it has gone away.
  }
}

async function serve(config: Config): Promise<void> {
  const logs = logsOf(!process.env.NO_COLOR && (await isTerminal(2)));
  exitOnCrash(logs("main"));
  // Listened for before anything starts, so that none is missed.
  const signal = firstSignal();
  const { startService } = await import("./service.ts");
  const service = await startService(config, { clock: systemClock, logs });
  // A start that fails for good ends the wait.
  const name = await Promise.race([signal, service.opened.then(() => signal)]);
  await service.stop(name);
}

function logsOf(colors: boolean): ReturnType<typeof createLogs> {
  return createLogs({
    filter: process.env.DYN_LOG,
    format: isOn(process.env.DYN_LOGGING_JSONL) ? "json" : "text",
    colors,
    clock: systemClock,
    write: (line) => stderr.write(line),
  });
}

function exitOnCrash(log: Log): void {
  const crash = (error: unknown) => {
    log.error("internal error; stopping", {
      error: error instanceof Error ? (error.stack ?? error.message) : messageOf(error),
    });
    void exit(1);
  };
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);
}

/** The first signal to stop. A second one ends the process at once. */
function firstSignal(): Promise<keyof typeof SIGNALS> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const name of ["SIGINT", "SIGTERM"] as const) {
      process.on(name, () => {
        if (stopping) process.exit(128 + SIGNALS[name]);
        stopping = true;
        resolve(name);
      });
    }
  });
}

/**
 * Whether a person reads what is written there. `node:tty` brings sockets and streams with it, a tenth of
 * a start, so it is asked only where Bun has found a terminal: that may be standard output.
 */
async function isTerminal(fd: number): Promise<boolean> {
  return Bun.enableANSIColors && (await import("node:tty")).isatty(fd);
}

function isOn(value: string | undefined): boolean {
  return value === "1" || value?.toLowerCase() === "true";
}
