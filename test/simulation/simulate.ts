/**
 * `bun run simulate`: runs simulations until one fails or the time is over. `run.ts` tells what they are.
 */
import { parseArgs } from "node:util";
import { messageOf } from "../../src/runtime/errors.ts";
import { planOf } from "./plan-of.ts";
import { describe, outline } from "./report.ts";
import { run } from "./run.ts";
import { shrink } from "./shrink.ts";

const USAGE = `Usage: bun run simulate [--seed N] [--minutes M]

  --seed N      run the simulation of this seed, and no other; with --minutes, begin with it
  --minutes M   go on with one seed after the other for so long (default: 1)`;

interface Request {
  readonly seed: number;
  /** Undefined where only that seed is asked for. */
  readonly minutes: number | undefined;
}

/** @throws Error that says what is wrong with the arguments */
function requestOf(args: readonly string[]): Request {
  const { values, tokens } = parseArgs({
    args: [...args],
    options: { seed: { type: "string" }, minutes: { type: "string" } },
    tokens: true,
  });
  const names = tokens.map((token) => (token.kind === "option" ? token.rawName : ""));
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined) throw new Error(`${repeated}: given more than once`);
  const minutes = wholeNumber("--minutes", values.minutes);
  if (minutes === 0) throw new Error("--minutes: has to be above zero");
  const seed = wholeNumber("--seed", values.seed);
  return { seed: seed ?? 1, minutes: minutes ?? (seed === undefined ? 1 : undefined) };
}

function wholeNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Error(`${flag}: '${text}' is not a whole number`);
  return Number(text);
}

/** Runs what is asked for, and returns the exit status. */
function simulate({ seed: first, minutes }: Request): number {
  const startedAtMs = performance.now();
  const untilMs = startedAtMs + (minutes ?? 0) * 60_000;
  let simulatedMs = 0;
  let seed = first;
  for (; ; seed += 1) {
    const plan = planOf(String(seed));
    const outcome = run(plan);
    simulatedMs += outcome.simulatedMs;
    if (outcome.violation !== undefined) {
      console.error(`seed ${seed} fails: ${describe(outcome.violation)}`);
      const least = shrink({ plan, outcome });
      if (least.outcome.violation !== undefined) {
        console.error(`the least of it that fails: ${describe(least.outcome.violation)}`);
      }
      console.error(`  ${outline(least.plan)}`);
      console.error(`to see it again: bun run simulate --seed ${seed}`);
      return 1;
    }
    if (performance.now() >= untilMs) break;
  }
  const runs = seed - first + 1;
  const hours = (simulatedMs / 3_600_000).toFixed(1);
  const secs = Math.round((performance.now() - startedAtMs) / 1000);
  console.log(`${runs} runs (seeds ${first} to ${seed}), ${hours} simulated hours, in ${secs} s`);
  return 0;
}

let request: Request;
try {
  request = requestOf(process.argv.slice(2));
} catch (error) {
  console.error(`${messageOf(error)}\n\n${USAGE}`);
  process.exit(2);
}
process.exit(simulate(request));
