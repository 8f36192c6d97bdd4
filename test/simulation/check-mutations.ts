/**
 * `bun run simulate:mutations`: puts each bug of `mutations.ts` into a copy of the source, and runs
 * simulations over the copy until one fails. Prints the table of docs/design.md, and fails where a bug
 * was not found.
 */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { MUTATIONS, type Mutation } from "./mutations.ts";

const ROOT = resolve(import.meta.dir, "../..");
/** What simulations consist of. */
const COPIED = ["src", "test/simulation", "test/support", "package.json"];
/** A bug that none of so many runs shows is not found. */
const MOST_RUNS = 1000;

/** The seed that shows a bug, and the invariant that it breaks; undefined where none does. */
async function find({ bug, file, before, after }: Mutation) {
  const folder = mkdtempSync(join(tmpdir(), "mutation-"));
  try {
    for (const path of COPIED) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const path = join(folder, file);
    const pieces = (await Bun.file(path).text()).split(before);
    if (pieces.length !== 2)
      throw new Error(`${bug}: ${file} has ${pieces.length - 1} such places`);
    await Bun.write(path, pieces.join(after));
    // The copy's modules are those of this folder, but for the bug.
    const { planOf }: typeof import("./plan-of.ts") = await import(
      join(folder, "test/simulation/plan-of.ts")
    );
    const { run }: typeof import("./run.ts") = await import(join(folder, "test/simulation/run.ts"));
    for (let seed = 1; seed <= MOST_RUNS; seed += 1) {
      const { violation } = run(planOf(String(seed)));
      if (violation !== undefined) return { seed, invariant: violation.invariant };
    }
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

console.log("| bug | invariant | seed |\n|---|---|---|");
let missed = 0;
for (const mutation of MUTATIONS) {
  const found = await find(mutation);
  if (found === undefined) missed += 1;
  const { invariant = "**not found**", seed = "" } = found ?? {};
  console.log(`| ${mutation.bug} | ${invariant} | ${seed} |`);
}
process.exit(missed > 0 ? 1 : 0);
