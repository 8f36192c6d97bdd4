import { BenchError } from "./errors.ts";
import { atMost, type Figure, figure } from "./figure.ts";
import { LOAD_CORE, pinned } from "./pin.ts";
import { type Programs, saveBodies } from "./programs.ts";
import { register } from "./registrations.ts";
import { calmest } from "./rounds.ts";
import { type Server, startService } from "./server.ts";

const POOLS = 10_000;
const READERS = 200;
/** A pool that scales or moves each 7 ms: more than 10,000 pools do, other than in a storm. */
const CHANGES_PER_SEC = 150;
const ROUNDS = { wanted: 3, spare: 3 };
const ROUND_SECS = 4;
/** Until the readers are spread over their period. */
const WARM_UP_SECS = 3;

/** Registrations that change a long list, while routers poll it: each of them gets another one. */
export async function changingFigures(programs: Programs): Promise<Figure[]> {
  await using service = await startService(programs, { ownCore: true });
  const bodiesPath = await saveBodies(await register(service, POOLS));
  using _readers = startReaders(service);
  await change(service, bodiesPath, WARM_UP_SECS);
  const samples = await calmest(ROUNDS, async () => {
    const before = service.cpuSecs();
    const waits = await change(service, bodiesPath, ROUND_SECS);
    return { ...waits, cpuMs: ((service.cpuSecs() - before) * 1000) / ROUND_SECS };
  });
  const each = (name: "medianMs" | "p99Ms" | "cpuMs") => ({
    service: samples.map((sample) => sample[name]),
  });
  const name = `${CHANGES_PER_SEC} changes/s of 10,000 pools, ${READERS} readers`;
  return [
    figure(`${name}: POST, p99`, "ms", each("p99Ms"), atMost(10)),
    figure(`${name}: POST, median`, "ms", each("medianMs")),
    figure(`${name}: CPU for each second`, "ms", each("cpuMs")),
  ];
}

/** How long those waited who posted changes. */
async function change(service: Server, bodiesPath: string, seconds: number) {
  const client = [process.execPath, `${import.meta.dir}/change-client.ts`];
  const command = [...client, service.url, bodiesPath, `${CHANGES_PER_SEC}`, `${seconds}`];
  const child = Bun.spawn(pinned(LOAD_CORE, command), { stdout: "pipe", stderr: "pipe" });
  const [output, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const [medianMs = Number.NaN, p99Ms = Number.NaN] = output.split(" ").map(Number.parseFloat);
  if (Number.isNaN(p99Ms)) throw new BenchError(`the client that posts failed: ${complaint}`);
  return { medianMs, p99Ms };
}

/** Starts the readers, which end with the scope. */
function startReaders(service: Server): Disposable {
  const client = [process.execPath, `${import.meta.dir}/poll-client.ts`];
  const command = [...client, `${service.url}/pools`, `${READERS}`];
  // On the core that they share, what is measured goes first.
  const child = Bun.spawn(pinned(LOAD_CORE, ["nice", "-n", "19", ...command]), {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  return {
    [Symbol.dispose]() {
      process.off("exit", kill);
      kill();
    },
  };
}
