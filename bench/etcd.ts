import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { BenchError } from "./errors.ts";
import { keepAliveFrame, putFrame, rangeFrame } from "./etcd-messages.ts";
import { atLeast, type Figure, type Goal } from "./figure.ts";
import { h2load, type Requests } from "./h2load.ts";
import { type Programs, saveBodies, WORK } from "./programs.ts";
import { register, registrations } from "./registrations.ts";
import type { Rounds } from "./rounds.ts";
import { freePort, type Server, start, startService } from "./server.ts";
import { compareRates } from "./throughput.ts";

const POOLS = 1000;
const ROUNDS: Rounds = { wanted: 3, spare: 3 };
/** A round is of both sides. */
const ROUND_SECS = 2;
const WARM_UP_SECS = 1;
/** The lease that all keys hang on. */
const LEASE = { ID: 7, TTL: 86_400 };
/** A lease that was left without more than this was not renewed by the rounds just before. */
const AGE_SECS = 5;
/** All keys begin with it, and none with what comes behind it. */
const [PREFIX, PREFIX_END] = ["/pools/", "/pools0"];
const GRPC_HEADERS = { "content-type": "application/grpc", te: "trailers" };

const ownCore = true;

/**
 * Heartbeats and lists, against those who would keep registrations in etcd. It keeps what it is told,
 * by raft and fsync (here into memory), where the memory store forgets it with the process.
 */
export async function etcdFigures(programs: Programs): Promise<Figure[]> {
  const missing = ["etcd", "h2load"].filter((program) => Bun.which(program) === null);
  if (missing.length > 0) {
    console.error(
      `skipped: ${missing.join(" and ")} missing (apt-get install etcd-server nghttp2-client)`,
    );
    return [];
  }
  const bodies = registrations(POOLS);
  const [body = ""] = bodies;
  await using etcd = await startEtcd();
  await using one = await startService(programs, { ownCore });
  await using many = await startService(programs, { ownCore });
  await register(one, 1);
  await register(many, POOLS);
  await post(etcd, "lease/grant", LEASE);
  const keys = bodies.map((text, index) => ({ key: `${PREFIX}${index}`, value: text }));
  for (const pair of keys) await post(etcd, "kv/put", { ...base64(pair), lease: LEASE.ID });

  const heartbeat: Requests = {
    server: one,
    path: "/pools",
    bodyPath: await saveBodies([body]),
    headers: { "Content-Type": "application/json" },
    protocol: "h1",
  };
  const list: Requests = { server: many, path: "/pools", headers: {}, protocol: "h1" };
  const putOne = { key: `${PREFIX}0`, value: body, lease: LEASE.ID };
  const put = await call(etcd, "KV/Put", putFrame(putOne));
  const keepAlive = await call(etcd, "Lease/LeaseKeepAlive", keepAliveFrame(LEASE.ID));
  const range = await call(etcd, "KV/Range", rangeFrame(PREFIX, PREFIX_END));

  const versionBefore = await versionOf(etcd, putOne.key);
  const figures = [
    await compare("POST unchanged (peer: etcd, Put with a lease)", heartbeat, put, atLeast(4)),
  ];
  if ((await versionOf(etcd, putOne.key)) <= versionBefore)
    throw new BenchError("etcd put nothing");
  // It was granted some seconds ago, and nothing has renewed it since.
  await expectTtl(etcd, (seconds) => seconds < LEASE.TTL - AGE_SECS);
  figures.push(
    await compare("POST unchanged (peer: etcd, LeaseKeepAlive)", heartbeat, keepAlive, atLeast(2)),
  );
  await expectTtl(etcd, (seconds) => seconds >= LEASE.TTL - AGE_SECS);
  figures.push(
    await compare("GET, 1,000 pools (peer: etcd, Range of 1,000)", list, range, atLeast(8)),
  );
  return figures;
}

function compare(name: string, service: Requests, peer: Requests, goal: Goal): Promise<Figure> {
  return compareRates(
    name,
    {
      service: (seconds) => h2load(service, seconds),
      peer: (seconds) => h2load(peer, seconds),
    },
    { goal, rounds: ROUNDS, roundSecs: ROUND_SECS, warmUpSecs: WARM_UP_SECS },
  );
}

/** Starts etcd with its data in memory, where there is a file system for that. */
async function startEtcd(): Promise<Server> {
  const memory = "/dev/shm";
  const dataDir = mkdtempSync(`${existsSync(memory) ? memory : tmpdir()}/bench-etcd-`);
  const removeData = () => rmSync(dataDir, { recursive: true, force: true });
  process.once("exit", removeData);
  const peerUrl = `http://127.0.0.1:${freePort()}`;
  const server = await start(
    (port) => {
      const url = `http://127.0.0.1:${port}`;
      return [
        ...["etcd", "--data-dir", dataDir, "--log-level", "error"],
        ...["--listen-client-urls", url, "--advertise-client-urls", url],
        ...["--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl],
        ...["--initial-cluster", `default=${peerUrl}`],
      ];
    },
    {
      ownCore,
      healthPath: "/health",
      stderr: "ignore",
      env: { ETCD_UNSUPPORTED_ARCH: process.arch },
    },
  );
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      process.off("exit", removeData);
      removeData();
    },
  };
}

/** A call by gRPC, made once to see that etcd does what is asked. */
async function call(server: Server, method: string, frame: Uint8Array): Promise<Requests> {
  const bodyPath = `${WORK}/${method.replace("/", "-")}.grpc`;
  await Bun.write(bodyPath, frame);
  const path = `/etcdserverpb.${method}`;
  await expectGrpcOk(server.url, path, frame);
  return { server, path, bodyPath, headers: GRPC_HEADERS, protocol: "h2c" };
}

/** A call that fails is answered with the status 200, too; what became of it is in the trailers. */
async function expectGrpcOk(url: string, path: string, frame: Uint8Array): Promise<void> {
  const { connect } = await import("node:http2");
  const session = connect(url);
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  session.on("error", reject);
  const stream = session.request({ ":method": "POST", ":path": path, ...GRPC_HEADERS });
  let status: unknown;
  // A call that fails at once has its trailers in place of headers.
  stream.on("response", (headers) => (status ??= headers["grpc-status"]));
  stream.on("trailers", (trailers) => (status = trailers["grpc-status"]));
  stream.on("error", reject);
  stream.on("end", () => resolve(status));
  stream.resume();
  stream.end(frame);
  try {
    const ended = await promise;
    if (Number(ended) !== 0) throw new BenchError(`etcd ends ${path} with grpc-status ${ended}`);
  } finally {
    session.destroy();
  }
}

/** What of the gateway's answers is looked at. */
interface GatewayAnswer {
  readonly kvs?: readonly { readonly version: string }[];
  readonly TTL?: string;
}

/** A call by etcd's JSON gateway. */
async function post(server: Server, path: string, body: unknown): Promise<GatewayAnswer> {
  const answer = await fetch(`${server.url}/v3/${path}`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new BenchError(`etcd answers ${path} with ${await answer.text()}`);
  // etcd's own answer, as its API says.
  return (await answer.json()) as GatewayAnswer;
}

function base64(pair: { readonly key: string; readonly value: string }) {
  return {
    key: Buffer.from(pair.key).toString("base64"),
    value: Buffer.from(pair.value).toString("base64"),
  };
}

/** How often a key was put. */
async function versionOf(etcd: Server, key: string): Promise<number> {
  const { kvs } = await post(etcd, "kv/range", base64({ key, value: "" }));
  return Number(kvs?.[0]?.version);
}

async function expectTtl(etcd: Server, isRight: (seconds: number) => boolean): Promise<void> {
  const { TTL } = await post(etcd, "lease/timetolive", { ID: LEASE.ID });
  if (!isRight(Number(TTL)))
    throw new BenchError(`etcd's lease is not renewed as it should: ${TTL} s`);
}
