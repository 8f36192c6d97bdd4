/**
 * Measures the service against the least that Bun can do, prints the figures as a table and writes
 * them to `dist/bench.json`. With an argument, only the groups whose name holds it are measured.
 * Exits with 1 where a goal is missed or the figures can't be had.
 */
import { availableParallelism, loadavg } from "node:os";
import { changingFigures } from "./changing.ts";
import { BenchError } from "./errors.ts";
import { etcdFigures } from "./etcd.ts";
import { type Figure, table } from "./figure.ts";
import { growthFigures } from "./growth.ts";
import { findWrk } from "./load.ts";
import { idleMemoryFigures, poolMemoryFigure, sizeFigure } from "./memory.ts";
import { type Programs, preparePrograms } from "./programs.ts";
import { sliceFigures } from "./slices.ts";
import { standaloneFigures } from "./standalone.ts";
import { helpFigure, startFigure } from "./start.ts";
import { tableFigures } from "./table.ts";
import { getFigures, notModifiedFigure, postFigure, scaleFigure } from "./throughput.ts";
import { waiterFigures } from "./waiters.ts";

type Group = (programs: Programs) => Promise<Figure | Figure[]> | Figure;

const groups: Readonly<Record<string, Group>> = {
  get: getFigures,
  "not-modified": notModifiedFigure,
  post: postFigure,
  scale: scaleFigure,
  etcd: etcdFigures,
  changing: changingFigures,
  help: helpFigure,
  start: startFigure,
  "idle-memory": idleMemoryFigures,
  "pool-memory": poolMemoryFigure,
  size: sizeFigure,
  standalone: standaloneFigures,
  table: tableFigures,
  slices: sliceFigures,
  waiters: waiterFigures,
  growth: growthFigures,
};

const RESULTS = `${import.meta.dir}/../dist/bench.json`;

process.exit(await main(process.argv[2] ?? ""));

async function main(filter: string): Promise<number> {
  const startedMs = performance.now();
  try {
    const chosen = Object.entries(groups).filter(([name]) => name.includes(filter));
    if (chosen.length === 0) {
      throw new BenchError(`nothing is called '${filter}'; there is ${Object.keys(groups)}`);
    }
    findWrk();
    const [load = 0] = loadavg();
    if (load > availableParallelism() / 2) {
      console.error(
        `this machine is busy (load ${load.toFixed(1)}): figures in ms will be too long`,
      );
    }
    const programs = await preparePrograms();
    const figures: Figure[] = [];
    for (const [name, measure] of chosen) {
      console.error(`measuring ${name} …`);
      figures.push(...[await measure(programs)].flat());
    }
    console.log(table(figures));
    console.error(`measured in ${Math.round((performance.now() - startedMs) / 1000)} s`);
    const machine = `${availableParallelism()} cores, ${process.platform} ${process.arch}`;
    const results = { at: new Date().toISOString(), bun: Bun.version, machine, load, figures };
    await Bun.write(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
    return figures.some(({ isMet }) => isMet === false) ? 1 : 0;
  } catch (error) {
    if (!(error instanceof BenchError)) throw error;
    console.error(`error: ${error.message}`);
    return 1;
  }
}
