import { BenchError } from "./errors.ts";
import { below, type Figure, figure } from "./figure.ts";
import { LOAD_CORE, pinned } from "./pin.ts";
import type { Programs } from "./programs.ts";
import { register } from "./registrations.ts";
import { calmest } from "./rounds.ts";
import { type Server, startService } from "./server.ts";
import type { WakeUp } from "./wait-client.ts";

const WAITERS = 5000;
const POOLS = 100;
const ROUNDS = { wanted: 3, spare: 3 };
const IDLE_ROUNDS = { wanted: 2, spare: 2 };
/** By then the waiters wait again, and the list has been left alone for as long as it is to be. */
const SETTLE_MS = 2000;
const IDLE_SECS = 2;

/** Clients that wait for a change: what they cost while there is none, and how soon they hear of one. */
export async function waiterFigures(programs: Programs): Promise<Figure[]> {
  // Not kept on one core: what is measured is time on the wall, and the runtime has threads to help.
  await using service = await startService(programs, { ownCore: false });
  const bodies = await register(service, POOLS);
  await Bun.sleep(SETTLE_MS);
  const bytesBefore = service.memoryBytes();
  await using clients = await startClients(service);
  await Bun.sleep(SETTLE_MS);
  const bytesEach = (service.memoryBytes() - bytesBefore) / WAITERS;
  const idleMs = await calmest(IDLE_ROUNDS, async () => {
    const before = service.cpuSecs();
    await Bun.sleep(IDLE_SECS * 1000);
    return ((service.cpuSecs() - before) * 1000) / IDLE_SECS;
  });
  const wakeUps = await calmest(ROUNDS, async (round) => {
    const body = { ...JSON.parse(bodies[0] ?? ""), model: `model ${round}` };
    const times = await clients.wakeUp(JSON.stringify(body));
    await Bun.sleep(SETTLE_MS);
    return times;
  });
  const times = (name: keyof WakeUp) => ({ service: wakeUps.map((each) => each[name]) });
  const name = `5,000 waiters, ${POOLS} pools`;
  return [
    figure(`${name}: change to answer, median`, "ms", times("medianMs"), below(50)),
    figure(`${name}: change to answer, p99`, "ms", times("p99Ms")),
    figure(`${name}: CPU for each quiet second`, "ms", { service: idleMs }, below(10)),
    figure(`${name}: memory of each`, "bytes", { service: [bytesEach] }),
  ];
}

async function startClients(service: Server) {
  let heard = Promise.withResolvers<WakeUp>();
  const command = [
    process.execPath,
    `${import.meta.dir}/wait-client.ts`,
    service.url,
    `${WAITERS}`,
  ];
  const child = Bun.spawn(pinned(LOAD_CORE, command), {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
    ipc: (message) => heard.resolve(message),
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const failed = child.exited.then(() => {
    throw new BenchError("the clients that wait failed");
  });
  // Ending them below is not a failure.
  failed.catch(() => {});
  await Promise.race([heard.promise, failed]);
  return {
    /** Has a registration posted. */
    async wakeUp(body: string): Promise<WakeUp> {
      if (child.exitCode !== null) return await failed;
      heard = Promise.withResolvers();
      child.send(body);
      return await Promise.race([heard.promise, failed]);
    },
    async [Symbol.asyncDispose]() {
      process.off("exit", kill);
      kill();
      await child.exited;
    },
  };
}
