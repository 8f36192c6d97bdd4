import { type ArgsDef, type CommandDef, defineCommand } from "citty";
import { description, name, version } from "../../package.json" with { type: "json" };
import { type Config, readConfig } from "./config.ts";
import { flags, headings } from "./flags.ts";
import { helpText } from "./help.ts";
import { parseCommandLine } from "./parse.ts";

/** What the command does once its line is read. */
export interface Actions {
  /** Prints to standard output. */
  readonly print: (text: string) => Promise<void>;
  readonly serve: (config: Config) => Promise<void>;
}

/** The flags as citty knows them. */
const args: ArgsDef = Object.fromEntries(
  Object.entries(flags).map(([flagName, { help, value, heading }]) => [
    flagName,
    { type: "string", valueHint: value, description: help, heading: headings[heading].title },
  ]),
);

/**
 * The command: its flags under their headings, and what it does with them.
 *
 * citty knows the flags from here, but reads a line too kindly (unknown and repeated flags pass), so
 * what was typed is read by `parseCommandLine` over the same table.
 *
 * @throws ServiceError from {@link readConfig} and {@link Actions.serve}
 */
export function command({ print, serve }: Actions): CommandDef {
  return defineCommand({
    meta: { name, version, description },
    args,
    async run({ rawArgs }) {
      const line = parseCommandLine(rawArgs);
      if (line.help) await print(helpText(name, version, description));
      else if (line.version) await print(`${name} ${version}`);
      else await serve(readConfig(line));
    },
  });
}
