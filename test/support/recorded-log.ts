import type { Fields, Log } from "../../src/runtime/log.ts";

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Fields;
}

/** A log that keeps what is logged. */
export function recordedLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: string) =>
    (message: string, fields: Fields = {}) => {
      lines.push({ level, message, fields });
    };
  return {
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    lines,
  };
}
