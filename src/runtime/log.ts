import type { Clock } from "./clock.ts";
import { oneLine, printableJson } from "./text.ts";

const LEVELS = ["trace", "debug", "info", "warn", "error", "off"] as const;
type Level = (typeof LEVELS)[number];

/** The parts of the service that log, by the names that `DYN_LOG` knows them. */
const MODULES = ["main", "http", "registrations", "kubernetes"] as const;
type Module = (typeof MODULES)[number];

/** What a log line says besides its message. The names that every line has are taken. */
export type Fields = Readonly<Record<string, string | number | boolean>> & {
  readonly [Taken in "time" | "level" | "target" | "message"]?: never;
};

/** Writes log lines of one module. Messages are constant; what varies goes into the fields. */
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

export interface LogOptions {
  /** `DYN_LOG`: a level, or a list such as `info,http=debug`. */
  readonly filter: string | undefined;
  readonly format: "text" | "json";
  /** Only for text. */
  readonly colors: boolean;
  readonly clock: Clock;
  /** Takes one line, its line feed included; false says that it had to be dropped. */
  readonly write: (line: string) => boolean;
}

/** Makes the loggers. Logs a warning where the filter names a level that there is not. */
export function createLogs(options: LogOptions): (module: Module) => Log {
  const filter = parseFilter(options.filter ?? "");
  const format = options.format === "json" ? jsonLine : textLine;
  let dropped = 0;
  const emit = (line: Omit<Line, "time">): boolean => {
    const time = new Date(options.clock.wallMs()).toISOString();
    return options.write(`${format({ ...line, time }, options.colors)}\n`);
  };
  const reportDropped = (): boolean => {
    const message = "log lines were dropped: nobody was reading";
    return emit({ level: "warn", module: "main", message, fields: { count: dropped } });
  };
  const logOf = (module: Module): Log => {
    const least = LEVELS.indexOf(filter.modules.get(module) ?? filter.level);
    const at = (level: Exclude<Level, "off">) => {
      if (LEVELS.indexOf(level) < least) return () => {};
      return (message: string, fields: Fields = {}) => {
        if (dropped > 0 && reportDropped()) dropped = 0;
        if (!emit({ level, module, message, fields })) dropped += 1;
      };
    };
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  };
  if (filter.unknown !== undefined) {
    logOf("main").warn("DYN_LOG names a level that there is not; using info", {
      given: filter.unknown,
      levels: LEVELS.join(","),
    });
  }
  return logOf;
}

interface Filter {
  readonly level: Level;
  readonly modules: ReadonlyMap<string, Level>;
  readonly unknown: string | undefined;
}

/**
 * Reads `level` or `level,module=level,…`. Entries of modules that are not ours are meant for other
 * parts of Dynamo, whatever they say.
 */
function parseFilter(text: string): Filter {
  let level: Level = "info";
  let unknown: string | undefined;
  const modules = new Map<string, Level>();
  for (const entry of text.split(",")) {
    const [left = "", right] = entry.split("=", 2).map((part) => part.trim());
    if (right !== undefined && !MODULES.some((module) => module === left)) continue;
    const name = (right ?? left).toLowerCase();
    if (name === "" && right === undefined) continue;
    const known = LEVELS.find((candidate) => candidate === name);
    if (known === undefined) unknown ??= name;
    if (right === undefined) level = known ?? "info";
    else modules.set(left, known ?? "info");
  }
  return { level, modules, unknown };
}

interface Line {
  readonly time: string;
  readonly level: string;
  readonly module: Module;
  readonly message: string;
  readonly fields: Fields;
}

/** Longest value of one field in a line. */
const FIELD_CHARS = 1000;

function jsonLine({ time, level, module, message, fields }: Line): string {
  return printableJson({
    time,
    level: level.toUpperCase(),
    target: module,
    message,
    ...fields,
  });
}

const COLORS: Readonly<Record<string, string>> = {
  debug: "\x1b[34m",
  info: "\x1b[32m",
  warn: "\x1b[33m",
  error: "\x1b[31m",
};

function textLine({ time, level, module, message, fields }: Line, colors: boolean): string {
  const padded = level.toUpperCase().padEnd(5);
  const shown = colors ? `${COLORS[level] ?? ""}${padded}\x1b[0m` : padded;
  const pairs = Object.entries(fields).map(([name, value]) => ` ${name}=${textValue(value)}`);
  return `${time} ${shown} ${module}: ${message}${pairs.join("")}`;
}

/** A value that can't be taken for two, or for the end of the line. */
function textValue(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  const line = oneLine(value.slice(0, FIELD_CHARS).replace(/["\\]/g, "\\$&"), FIELD_CHARS);
  return /^[^\s"=\\]+$/u.test(line) ? line : `"${line}"`;
}
