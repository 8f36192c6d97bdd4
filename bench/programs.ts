import { copyFileSync, mkdirSync, rmSync, statSync } from "node:fs";
import { Glob } from "bun";
import { buildSwitches } from "../build.ts";
import { BenchError } from "./errors.ts";

const ROOT = `${import.meta.dir}/..`;
const BUILT = `${ROOT}/dist/global-discovery-service`;

/** The directory for what the measurements need on disk. */
export const WORK = `${ROOT}/dist/bench`;

/** The two executable files that are compared. */
export interface Programs {
  readonly service: string;
  readonly bare: string;
}

/**
 * Makes both files. The service is measured in a copy: a build in the meantime doesn't change what
 * is measured, and no memory is shared with an instance that someone else runs.
 */
export async function preparePrograms(): Promise<Programs> {
  mkdirSync(WORK, { recursive: true });
  if (isStale()) await Bun.$`bun build.ts`.cwd(ROOT).quiet();
  const service = `${WORK}/service`;
  // Not over the old copy, which may be running.
  rmSync(service, { force: true });
  copyFileSync(BUILT, service);
  return { service, bare: await compileBare() };
}

/** Whether a source is newer than the built file, or there is none. */
function isStale(): boolean {
  const builtMs = statSync(BUILT, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = [
    ...["build.ts", "package.json", "bun.lock"],
    ...new Glob("{src,packaging}/**").scanSync(ROOT),
  ];
  return sources.some((source) => statSync(`${ROOT}/${source}`).mtimeMs > builtMs);
}

/** Compiles the peer with the switches of `build.ts`. */
async function compileBare(): Promise<string> {
  const outfile = `${WORK}/bare`;
  const built = await Bun.build({
    ...buildSwitches(outfile),
    entrypoints: [`${import.meta.dir}/bare.ts`],
  });
  if (!built.success) throw new BenchError(`the peer can't be built: ${built.logs.join("; ")}`);
  return outfile;
}

/** Keeps bodies in a file, one a line, for the load generator to send. */
export async function saveBodies(bodies: readonly string[]): Promise<string> {
  const path = `${WORK}/registrations-${bodies.length}.jsonl`;
  await Bun.write(path, `${bodies.join("\n")}\n`);
  return path;
}
