import { BenchError } from "./errors.ts";
import { atLeast, type Figure, figure, type Goal } from "./figure.ts";
import type { Generator, Rates } from "./generator.ts";
import { type Load, load } from "./load.ts";
import { type Programs, saveBodies, WORK } from "./programs.ts";
import { fetchList, register } from "./registrations.ts";
import { calmest, median, type Pair, type Rounds } from "./rounds.ts";
import { type ListAnswer, type Server, startBare, startService } from "./server.ts";

const ROUNDS: Rounds = { wanted: 4, spare: 3 };
/** Both sides are the service, so that what is looked for is small. */
const SCALE_ROUNDS: Rounds = { wanted: 6, spare: 4 };
/** A round is of both sides. */
const ROUND_SECS = 2;
/** Until both sides run as optimised code. */
const WARM_UP_SECS = 1;

const ownCore = true;

/** `GET /pools`: one list of each size against the same bytes from the peer, header fields included. */
export async function getFigures(programs: Programs): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const pools of [1, 1_000, 10_000]) {
    await using service = await startService(programs, { ownCore });
    await register(service, pools);
    const list = await saveList(service);
    await using bare = await startBare(programs, { ownCore, list });
    const name = `GET /pools, ${pools.toLocaleString("en-US")} pool${pools === 1 ? "" : "s"}`;
    // What a request costs besides its bytes shows less in longer lists.
    const goal = atLeast(pools === 1 ? 0.9 : 0.95);
    figures.push(await compare(name, { server: service }, { server: bare }, goal));
    if (pools > 1) continue;
    const headers = { "Content-Type": list.headers["content-type"] ?? "" };
    await using shorter = await startBare(programs, { ownCore, list: { ...list, headers } });
    const ofShorter = `${name} (peer: Content-Type alone)`;
    figures.push(await compare(ofShorter, { server: service }, { server: shorter }));
  }
  return figures;
}

/** `GET /pools` by a client that has the list, against the peer's whole answer to the same request. */
export async function notModifiedFigure(programs: Programs): Promise<Figure> {
  await using service = await startService(programs, { ownCore });
  await register(service, 1);
  await using bare = await startBare(programs, { ownCore, list: await saveList(service) });
  const etag = (await fetchList(service)).headers.get("ETag") ?? "";
  const { status } = await fetchList(service, { "If-None-Match": etag });
  if (status !== 304) throw new BenchError(`the current ETag is answered with ${status}`);
  return await compare(
    "GET /pools, 304 (peer: the whole answer)",
    { server: service, etag },
    { server: bare, etag },
    atLeast(0.9),
  );
}

/** `POST /pools` that renews one pool, against a peer that only parses the same JSON. */
export async function postFigure(programs: Programs): Promise<Figure> {
  await using service = await startService(programs, { ownCore });
  const bodiesPath = await saveBodies(await register(service, 1));
  await using bare = await startBare(programs, { ownCore });
  return await compare(
    "POST /pools, unchanged",
    { server: service, bodiesPath },
    { server: bare, bodiesPath },
    atLeast(0.6),
  );
}

/** `POST /pools` that renews 10,000 pools in turn, against the service itself with 100. */
export async function scaleFigure(programs: Programs): Promise<Figure> {
  await using many = await startService(programs, { ownCore });
  await using few = await startService(programs, { ownCore });
  const manyBodies = await saveBodies(await register(many, 10_000));
  const fewBodies = await saveBodies(await register(few, 100));
  return await compare(
    "POST /pools, 10,000 pools (peer: itself with 100)",
    { server: many, bodiesPath: manyBodies },
    { server: few, bodiesPath: fewBodies },
    atLeast(0.9),
    SCALE_ROUNDS,
  );
}

function compare(
  name: string,
  service: Load,
  peer: Load,
  goal?: Goal,
  rounds = ROUNDS,
): Promise<Figure> {
  return compareRates(
    name,
    { service: (seconds) => load(service, seconds), peer: (seconds) => load(peer, seconds) },
    { ...(goal && { goal }), rounds, roundSecs: ROUND_SECS, warmUpSecs: WARM_UP_SECS },
  );
}

interface Comparison {
  readonly goal?: Goal;
  readonly rounds: Rounds;
  readonly roundSecs: number;
  readonly warmUpSecs: number;
}

/** Compares how many requests two servers take. */
export async function compareRates(
  name: string,
  sides: Pair<(seconds: number) => Generator>,
  { goal, rounds, roundSecs, warmUpSecs }: Comparison,
): Promise<Figure> {
  for (const side of [sides.service, sides.peer]) await side(warmUpSecs).rates();
  const rates = await calmest(rounds, () => inTurns(sides, roundSecs));
  const samples = (unit: keyof Rates) => ({
    service: rates.map(({ service }) => service[unit]),
    peer: rates.map(({ peer }) => peer[unit]),
  });
  const perSecond = samples("perSecond");
  return {
    ...figure(name, "/core s", samples("perCoreSecond"), goal),
    perSecond: { service: median(perSecond.service), peer: median(perSecond.peer) },
  };
}

/** How long one side is loaded before it is the other's turn. */
const TURN_MS = 100;

/**
 * Loads two servers for so many seconds together, of which each has every other tenth: the pace of a
 * virtual machine may change by half from one second to the next, and has to hit both.
 */
async function inTurns(
  sides: Pair<(seconds: number) => Generator>,
  seconds: number,
): Promise<Pair<Rates>> {
  const service = sides.service(seconds);
  const peer = sides.peer(seconds);
  peer.hold();
  let [running, held] = [service, peer];
  // They see that their time is up only while they run.
  for (const untilMs = performance.now() + seconds * 1000; performance.now() < untilMs; ) {
    await Bun.sleep(TURN_MS);
    running.hold();
    held.resume();
    [running, held] = [held, running];
  }
  held.resume();
  return { service: await service.rates(), peer: await peer.rates() };
}

/** The fields that a server puts in by itself. */
const OF_THE_SERVER = ["connection", "content-length", "date"];

/** Keeps the answer to `GET /pools` for the peer to give: its body in a file. */
async function saveList(service: Server): Promise<ListAnswer> {
  const bodyPath = `${WORK}/pools.json`;
  const answer = await fetchList(service);
  await Bun.write(bodyPath, await answer.bytes());
  const fields = [...answer.headers].filter(([name]) => !OF_THE_SERVER.includes(name));
  return { bodyPath, headers: Object.fromEntries(fields) };
}
