import { buildSwitches } from "../build.ts";
import { Elf } from "../packaging/elf.ts";
import { BenchError } from "./errors.ts";
import { type Figure, figure } from "./figure.ts";
import { settledBytes } from "./memory.ts";
import { type Programs, WORK } from "./programs.ts";
import { alternate, type Rounds } from "./rounds.ts";
import { type Server, startService } from "./server.ts";

const START_ROUNDS: Rounds = { wanted: 15, spare: 15 };
const MEMORY_ROUNDS: Rounds = { wanted: 1, spare: 0 };
/** What it takes to have both files in the page cache. */
const WARM_UP: Rounds = { wanted: 2, spare: 0 };

/** What it costs to bring glibc along: the service, against the same without glibc in it. */
export async function standaloneFigures(programs: Programs): Promise<Figure[]> {
  const bytes = await Bun.file(programs.service).bytes();
  if (new Elf(bytes, programs.service).interpreter !== undefined) {
    throw new BenchError("the service was built with --dynamic: run bun run build.ts");
  }
  const dynamic = await compileDynamic();
  const both = async <T>(rounds: Rounds, measure: (server: Server) => T | Promise<T>) => {
    const timed = (service: string) => async () => {
      await using server = await startService({ ...programs, service }, { ownCore: false });
      return await measure(server);
    };
    return await alternate(rounds, { service: timed(programs.service), peer: timed(dynamic) });
  };
  const startMs = (server: Server) => server.startMs;
  await both(WARM_UP, startMs);
  const size = (path: string) => [Bun.file(path).size];
  return [
    figure("file with glibc in it (peer: without)", "MB", {
      service: size(programs.service),
      peer: size(dynamic),
    }),
    figure("its start to the first 200", "ms", await both(START_ROUNDS, startMs)),
    figure("its memory, idle", "MB", await both(MEMORY_ROUNDS, settledBytes)),
  ];
}

/** Compiles the service as `build.ts --dynamic` does. */
async function compileDynamic(): Promise<string> {
  const outfile = `${WORK}/dynamic`;
  const entrypoints = [`${import.meta.dir}/../src/main.ts`];
  const built = await Bun.build({ ...buildSwitches(outfile), entrypoints });
  if (!built.success) throw new BenchError(`the service can't be built: ${built.logs.join("; ")}`);
  return outfile;
}
