import { atMost, type Figure, figure } from "./figure.ts";
import type { Programs } from "./programs.ts";
import { fetchList, post, registrations } from "./registrations.ts";
import { alternate, type Rounds } from "./rounds.ts";
import { type Server, startBare, startService } from "./server.ts";

/** Memory is the same on a busy machine. */
const ROUNDS: Rounds = { wanted: 2, spare: 0 };
/** By then the garbage of what went before is collected, and its pages are given back. */
const SETTLE_MS = 3000;
const POOLS = 10_000;

const ownCore = false;

/** Memory of a server that has answered one request for `/healthz`. */
export async function idleMemoryFigures(programs: Programs): Promise<Figure[]> {
  const idle = (begin: () => Promise<Server>) => async () => {
    await using server = await begin();
    return await settledBytes(server);
  };
  const samples = await alternate(ROUNDS, {
    service: idle(() => startService(programs, { ownCore, usualLogs: true })),
    peer: idle(() => startBare(programs, { ownCore })),
  });
  return [
    figure("memory, idle", "MB", samples, atMost(1.5)),
    figure("memory, idle, by itself", "MB", { service: samples.service }, atMost(60e6)),
  ];
}

/**
 * What a pool adds to the memory. After the same number of requests with a single pool, a process
 * has as much heap in use for everything else.
 */
export async function poolMemoryFigure(programs: Programs): Promise<Figure> {
  const bodies = registrations(POOLS);
  const same = bodies.map(() => bodies[0] ?? "");
  const after = (requests: readonly string[]) => async () => {
    await using service = await startService(programs, { ownCore });
    await post(service, requests);
    // The list's own bytes count as well.
    await (await fetchList(service)).bytes();
    return await settledBytes(service);
  };
  const bytes = await alternate(ROUNDS, { service: after(bodies), peer: after(same) });
  const perPool = bytes.service.map(
    (many, round) => (many - (bytes.peer[round] ?? 0)) / (POOLS - 1),
  );
  return figure("memory, each of 10,000 pools", "bytes", { service: perPool }, atMost(2500));
}

/** The size of the executable file. */
export function sizeFigure({ service, bare }: Programs): Figure {
  const samples = { service: [Bun.file(service).size], peer: [Bun.file(bare).size] };
  return figure("executable file", "MB", samples, atMost(1.08));
}

/** Memory of a server once what its start has left behind is collected. */
export async function settledBytes(server: Server): Promise<number> {
  await Bun.sleep(SETTLE_MS);
  return server.memoryBytes();
}
