import { expect } from "bun:test";
import { type Launch, type Outcome, run } from "./service.ts";

/** Nothing of how the program is made shows. */
export function expectNoStackTrace(text: string): void {
  expect(text).not.toMatch(/^\s+at /m);
  expect(text).not.toMatch(/\.[jt]s:\d|node_modules|Bun v\d|\bnode:internal/);
}

/**
 * Checks that a command line is refused: exit status 2, and one message on standard error that
 * names every flag at fault and points to `--help`.
 */
export async function expectUsageError(
  command: readonly string[],
  args: readonly string[],
  ...words: readonly string[]
): Promise<Outcome> {
  const outcome = await run(command, { args });
  const label = `${args.join(" ").slice(0, 200)}\n${outcome.stderr}`;
  expect(outcome.status, label).toBe(2);
  expect(outcome.stdout, label).toBe("");
  expect(outcome.stderr, label).toStartWith("error: ");
  expect(outcome.stderr, label).toEndWith("\n\nFor more information, try '--help'.\n");
  expect(outcome.stderr.match(/^error: |For more information/gm), label).toHaveLength(2);
  expect(outcome.stderr, label).not.toMatch(/[^\P{Cc}\n]/u);
  expect(outcome.stderr.length, label).toBeLessThan(4000);
  for (const word of words) expect(outcome.stderr, label).toContain(word);
  expectNoStackTrace(outcome.stderr);
  return outcome;
}

/**
 * Checks that the service says in one line why it can't start, beside the lines of the log, and
 * ends with status 1.
 */
export async function expectStartupError(
  command: readonly string[],
  launch: Launch,
  ...words: readonly string[]
): Promise<void> {
  const { status, stdout, stderr } = await run(command, launch);
  const label = `${launch.args?.join(" ")}\n${stderr}`;
  expect(status, label).toBe(1);
  expect(stdout, label).toBe("");
  const lines = stderr.split("\n").filter((line) => line !== "");
  const errors = lines.filter((line) => line.startsWith("error: "));
  expect(errors, label).toHaveLength(1);
  for (const line of lines) expect(line, label).toMatch(/^(error: |\d{4}-\d\d-\d\dT|\{)/);
  for (const word of words) expect(errors[0], label).toContain(word);
  expect(stderr, label).not.toContain("--help");
  expectNoStackTrace(stderr);
}
