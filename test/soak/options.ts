import { parseArgs } from "node:util";

export interface SoakOptions {
  readonly minutes: number;
  /** What all choices follow from. */
  readonly seed: number;
}

export const USAGE = `bun run soak [--minutes M] [--seed N]

  --minutes M   how long faults and healing alternate (default: 10)
  --seed N      a whole number from which all choices follow (default: another one each time)
`;

const MOST_SEED = 2 ** 32 - 1;

/**
 * Reads the command line.
 *
 * @throws Error that says what is wrong with it
 */
export function soakOptions(args: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: { minutes: { type: "string" }, seed: { type: "string" } },
    strict: true,
  });
  const minutes = numberOf("minutes", values.minutes ?? "10", /^\d+(\.\d+)?$/);
  if (minutes < 0.1 || minutes > 1440) throw new Error("--minutes is to be from 0.1 to 1440");
  const seed =
    values.seed === undefined
      ? Math.floor(Math.random() * MOST_SEED)
      : numberOf("seed", values.seed, /^\d+$/);
  if (seed > MOST_SEED) throw new Error(`--seed is to be at most ${MOST_SEED}`);
  return { minutes, seed };
}

function numberOf(name: string, text: string, form: RegExp): number {
  if (!form.test(text)) throw new Error(`--${name} is to be a number, not '${text}'`);
  return Number(text);
}
