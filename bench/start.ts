import { BenchError } from "./errors.ts";
import { atMost, below, type Figure, figure } from "./figure.ts";
import type { Programs } from "./programs.ts";
import { alternate, calmest, type Rounds } from "./rounds.ts";
import { type Server, startBare, startService } from "./server.ts";

const ROUNDS: Rounds = { wanted: 21, spare: 21 };
/** What it takes to have both files in the page cache. */
const WARM_UP: Rounds = { wanted: 2, spare: 0 };

/** How long `--help` takes, from before the process is made to its end. */
export async function helpFigure({ service }: Programs): Promise<Figure> {
  const help = async () => {
    const startedMs = performance.now();
    const { exitCode } = Bun.spawnSync([service, "--help"], { stdout: "pipe", stderr: "inherit" });
    const tookMs = performance.now() - startedMs;
    if (exitCode !== 0) throw new BenchError(`--help exits with ${exitCode}`);
    return tookMs;
  };
  await calmest(WARM_UP, help);
  const samples = await calmest(ROUNDS, help);
  return figure("--help", "ms", { service: samples }, below(60));
}

/** From before the process is made to the first 200 of `/healthz`. */
export async function startFigure(programs: Programs): Promise<Figure> {
  const timed = (begin: () => Promise<Server>) => async () => {
    await using server = await begin();
    return server.startMs;
  };
  // Free to run on any core: so it is when a real one starts.
  const sides = {
    service: timed(() => startService(programs, { ownCore: false, usualLogs: true })),
    peer: timed(() => startBare(programs, { ownCore: false })),
  };
  await alternate(WARM_UP, sides);
  return figure("start to the first 200", "ms", await alternate(ROUNDS, sides), atMost(2.5));
}
