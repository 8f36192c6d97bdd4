import { type Figure, figure } from "./figure.ts";
import { type Load, load } from "./load.ts";
import { mergeMs } from "./merge.ts";
import { type Programs, saveBodies } from "./programs.ts";
import { fetchList, register } from "./registrations.ts";
import { type Server, startService } from "./server.ts";

const SIZES = [10, 100, 1000, 10_000, 100_000];
/** Once is enough to see how a figure grows tenfold, or doesn't. */
const ONCE = { wanted: 1, spare: 1 };
const SETTLE_MS = 2000;
const WARM_UP_SECS = 1;
const ROUND_SECS = 1;

/** What each size costs: memory, a heartbeat, a list, a list that the client has, and a poll. */
export async function growthFigures(programs: Programs): Promise<Figure[]> {
  const columns = new Map<string, Figure[]>();
  const add = (column: string, pools: number, unit: Figure["unit"], value: number) => {
    const name = `${column}, ${pools.toLocaleString("en-US")} pool${pools === 1 ? "" : "s"}`;
    const figures = columns.get(column) ?? [];
    columns.set(column, [...figures, figure(name, unit, { service: [value] })]);
  };
  for (const pools of SIZES) {
    await using service = await startService(programs, { ownCore: true });
    const bodies = await register(service, pools);
    const etag = (await fetchList(service)).headers.get("ETag") ?? "";
    await Bun.sleep(SETTLE_MS);
    add("memory", pools, "MB", service.memoryBytes());
    const bodiesPath = await saveBodies(bodies);
    await load({ server: service, bodiesPath }, WARM_UP_SECS).rates();
    const rateOf = async (what: Omit<Load, "server">) => await rate(service, what);
    add("POST unchanged", pools, "/core s", await rateOf({ bodiesPath }));
    add("GET", pools, "/core s", await rateOf({}));
    add("GET, 304", pools, "/core s", await rateOf({ etag }));
    const [pollMs = Number.NaN] = await mergeMs(bodies, "unchanged", ONCE);
    add("poll, decoding and merging", pools, "ms", pollMs);
  }
  return [...columns.values()].flat();
}

async function rate(server: Server, what: Omit<Load, "server">): Promise<number> {
  return (await load({ server, ...what }, ROUND_SECS).rates()).perCoreSecond;
}
