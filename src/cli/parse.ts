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

const SHORT: Readonly<Record<string, string>> = { "-h": "--help", "-V": "--version" };

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
  /** The flag's name; undefined for an argument that is not a flag. */
  readonly name: string | undefined;
  readonly value: string | undefined;
  readonly typed: string;
}

/**
 * The arguments one by one: `--name value`, `--name=value`, or what is no flag, as is all behind `--`
 * (POSIX, guideline 10). What looks like a flag is never taken for another flag's value.
 */
function tokenize(args: readonly string[]): Token[] {
  const tokens: Token[] = [];
  const waiting = [...args];
  for (let typed = waiting.shift(); typed !== undefined; typed = waiting.shift()) {
    if (typed === "--") {
      const others = waiting.map((other) => ({ name: undefined, value: undefined, typed: other }));
      return [...tokens, ...others];
    }
    if (/^-[hV]{2,}$/.test(typed)) {
      waiting.unshift(...Array.from(typed.slice(1), (letter) => `-${letter}`));
      continue;
    }
    const long = SHORT[typed] ?? typed;
    const [, flag = long, inline] = /^(--[^=]+)=(.*)$/s.exec(long) ?? [];
    const name = nameOf(flag);
    const takesNext =
      inline === undefined && name !== undefined && isFlagName(name) && !looksLikeFlag(waiting[0]);
    tokens.push({ name, value: takesNext ? waiting.shift() : inline, typed: flag });
  }
  return tokens;
}

/** What an argument names. With a single dash it stays as it is, which is no flag's name. */
function nameOf(argument: string): string | undefined {
  if (argument.startsWith("--")) return argument.slice(2);
  return argument.startsWith("-") && argument !== "-" ? argument : undefined;
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
  // Loaded for a fault only: its table takes 256 KB.
  const levenshtein: typeof import("fastest-levenshtein") = require("fastest-levenshtein");
  const names = [...Object.keys(flags), "help", "version"];
  const nearest = levenshtein.closest(name, names);
  if (levenshtein.distance(name, nearest) <= Math.max(2, name.length / 4)) return nearest;
  return names.find((candidate) => candidate.startsWith(name) || name.startsWith(`${candidate}-`));
}
