import { parseArgs } from "node:util";
import { closest, distance } from "fastest-levenshtein";
import { oneLine, quoted } from "../runtime/text.ts";
import { type FlagName, flags, ValueFault } from "./flags.ts";

/** Something wrong on the command line: the flag, or whatever was typed in its place, and why. */
export interface Fault {
  readonly subject: string;
  readonly reason: string;
}

/** What was typed. */
export interface CommandLine {
  readonly help: boolean;
  readonly version: boolean;
  /** The flags that were given with the values that they came to; a faulty one has none. */
  readonly given: ReadonlyMap<FlagName, readonly unknown[]>;
  readonly faults: readonly Fault[];
}

const OPTIONS = {
  ...Object.fromEntries(Object.keys(flags).map((name) => [name, { type: "string" } as const])),
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "V" },
} as const;

/** Reads the arguments, and finds all that is wrong with each by itself. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const given = new Map<FlagName, unknown[]>();
  const repeated = new Set<FlagName>();
  const faults: Fault[] = [];
  let help = false;
  let version = false;
  for (const { name, value, typed } of tokenize(args)) {
    if (name === "help" && value === undefined) help = true;
    else if (name === "version" && value === undefined) version = true;
    else if (name === "help" || name === "version") {
      faults.push({ subject: `--${name}`, reason: "takes no value" });
    } else if (name === undefined) {
      faults.push({ subject: quoted(typed), reason: "not a flag; there are no other arguments" });
    } else if (!isFlagName(name)) {
      faults.push({ subject: oneLine(typed, 60), reason: unknownFlag(typed) });
    } else {
      const values = given.get(name) ?? [];
      if (given.has(name) && flags[name].repeatable === undefined) repeated.add(name);
      given.set(name, values);
      const fault = readValue(name, value, values);
      if (fault !== undefined) faults.push({ subject: `--${name}`, reason: fault });
    }
  }
  for (const name of repeated) {
    faults.push({ subject: `--${name}`, reason: "given more than once, but takes one value" });
  }
  return { help, version, given, faults };
}

function isFlagName(name: string): name is FlagName {
  return Object.hasOwn(flags, name);
}

function readValue(
  name: FlagName,
  value: string | undefined,
  values: unknown[],
): string | undefined {
  if (value === undefined) return `needs a value: --${name} ${flags[name].value}`;
  try {
    values.push(flags[name].read(value));
    return undefined;
  } catch (error) {
    if (error instanceof ValueFault) return error.message;
    throw error;
  }
}

interface Token {
  /** The option's name; undefined for an argument that is not an option. */
  readonly name: string | undefined;
  readonly value: string | undefined;
  readonly typed: string;
}

/** The arguments one by one. What looks like a flag is never taken for another flag's value. */
function tokenize(args: readonly string[]): Token[] {
  const { tokens } = parseArgs({
    args: [...args],
    options: OPTIONS,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const found: Token[] = [];
  for (const token of tokens) {
    const typed = args[token.index] ?? "";
    if (token.kind === "positional") {
      found.push({ name: undefined, value: undefined, typed });
    } else if (token.kind === "option") {
      const { name, rawName, value, inlineValue } = token;
      if (inlineValue === false && looksLikeFlag(value)) {
        found.push({ name, value: undefined, typed: rawName });
        return [...found, ...tokenize(args.slice(token.index + 1))];
      }
      // `-xyz` comes as three tokens, but was typed as one thing.
      const known = name === "help" || name === "version";
      const cluster = !rawName.startsWith("--") && !known;
      if (cluster && found.at(-1)?.typed === typed) continue;
      found.push({ name, value, typed: cluster ? typed : rawName });
    }
  }
  return found;
}

/** Whether an argument is a flag rather than a value; `-5` is a value, if a wrong one. */
function looksLikeFlag(argument: string | undefined): boolean {
  return argument !== undefined && /^-[^\d]/.test(argument);
}

function unknownFlag(typed: string): string {
  const near = nearestFlag(typed.replace(/^-+/, "").toLowerCase().replaceAll("_", "-"));
  return `unknown flag${near === undefined ? "" : `; did you mean --${near}?`}`;
}

/** The flag that a name was probably meant to be: a slip of the finger away, or begun like it. */
function nearestFlag(name: string): string | undefined {
  if (name.length < 3) return undefined;
  const names = Object.keys(OPTIONS);
  const nearest = closest(name, names);
  if (distance(name, nearest) <= Math.max(2, name.length / 4)) return nearest;
  return names.find((candidate) => candidate.startsWith(name) || name.startsWith(`${candidate}-`));
}
