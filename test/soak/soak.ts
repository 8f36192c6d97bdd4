/**
 * Runs the compiled file in several replicas, over a DynamoDB emulator and a real API server, among
 * relays and routers, and does to them what happens in a bad hour. What they promise is checked with
 * every answer. Exits with 1 where a promise is broken.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, compiledCommand, dynoxide, isInstalled } from "../support/dynamodb.ts";
import { projectRoot } from "../support/service.ts";
import { Findings } from "./findings.ts";
import { soakOptions, USAGE } from "./options.ts";
import { Scene } from "./scene.ts";

// What was started ends with this process, however that ends.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
process.exit(await main(process.argv.slice(2)));

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(USAGE);
    return 0;
  }
  let options: ReturnType<typeof soakOptions>;
  try {
    options = soakOptions(args);
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (!(await Bun.file(compiledCommand[0] ?? "").exists())) {
    console.error("error: there is no compiled file; run bun run build.ts first");
    return 1;
  }
  if (!isInstalled(dynoxide)) return 1;
  console.log(`seed ${options.seed}, ${options.minutes} minutes`);
  const findings = new Findings((line) => console.error(line));
  try {
    await using scene = await Scene.start(options.seed, findings);
    const memory = await scene.run(options.minutes * 60_000);
    for (const [what, count] of findings.counts) console.log(`${what}: ${count}`);
    for (const line of memory) console.log(`memory of ${line}`);
    const { violations } = findings;
    if (violations.length === 0) {
      console.log(`no promise was broken (seed ${options.seed})`);
      return 0;
    }
    console.error(`${violations.length} violations; again with --seed ${options.seed}`);
    const folder = join(projectRoot, "dist/soak");
    mkdirSync(folder, { recursive: true });
    for (const { name, log } of scene.replicas) await Bun.write(join(folder, `${name}.log`), log);
    console.error(`the logs are in ${folder}`);
    return 1;
  } finally {
    await cleanUp();
  }
}
