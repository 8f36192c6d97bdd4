import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./service.ts";

/** Whether promtool is here. Says so where it isn't. */
export function hasPromtool(what: string): boolean {
  if (Bun.which("promtool") !== null) return true;
  console.log(`skipped: ${what} needs promtool (Debian: apt-get install prometheus)`);
  return false;
}

/** What promtool complains about; empty where it is content. */
export function promtool(args: readonly string[], stdin = ""): string {
  const child = Bun.spawnSync(["promtool", ...args], { stdin: Buffer.from(stdin) });
  const said = child.stderr.toString() + (child.exitCode === 0 ? "" : child.stdout.toString());
  return child.exitCode === 0 || said !== "" ? said : `exit status ${child.exitCode}`;
}

/** Runs promtool over a file with this text; its path is behind `args`. */
export function promtoolOn(text: string, args: readonly string[]): string {
  using folder = temporaryFolder();
  const path = join(folder.path, "file.yaml");
  writeFileSync(path, text);
  return promtool([...args, path]);
}
