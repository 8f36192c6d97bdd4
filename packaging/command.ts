import { PackagingError } from "./errors.ts";

/** Runs a command and returns what it printed; throws with what it said where it fails. */
export async function outputOf(command: readonly string[], cwd?: string): Promise<string> {
  const [name = ""] = command;
  if (Bun.which(name) === null) throw new PackagingError(`there is no command ${name} here`);
  const child = Bun.spawn([...command], {
    ...(cwd === undefined ? {} : { cwd }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new PackagingError(`${name} failed:\n${stderr.trim()}`);
  return stdout;
}
