import { ImportedDirectory } from "../src/directory/imported.ts";
import { mcs } from "../src/kubernetes/mcs.ts";
import type { SliceSink } from "../src/kubernetes/reflector.ts";
import type { EndpointSlice } from "../src/kubernetes/slice-api.ts";
import { parseRegistration } from "../src/pools/parse.ts";
import { MemoryStore } from "../src/registrations/memory.ts";
import { systemClock } from "../src/runtime/clock.ts";
import { RunClock } from "../src/runtime/run-clock.ts";
import { BenchError } from "./errors.ts";
import { atMost, type Figure, figure } from "./figure.ts";
import { type Programs, WORK } from "./programs.ts";
import { registrations } from "./registrations.ts";
import { calmest, median } from "./rounds.ts";
import { type Server, startService } from "./server.ts";

const SLICES = 5000;
/** Each pool has a slice of its relays and one of its frontends. */
const POOLS = SLICES / 2;
const ROUTERS = { namespace: "dynamo", service: "global-router", port: undefined };
const ROUNDS = { wanted: 3, spare: 3 };
const EVENTS = 500;
const UNTOUCHED = { end: 0, expired: 0, denied: 0, silent: 0, error: 0 };
/** By then garbage is collected, and its pages are given back. */
const SETTLE_MS = 3000;

/** The service in mcs mode, with slices that an API server of the bench's own serves. */
export async function sliceFigures(programs: Programs): Promise<Figure[]> {
  const starts = await calmest(ROUNDS, async () => {
    const bare = await startMeasured(programs, []);
    const full = await startMeasured(programs, slicesOf(POOLS));
    return {
      cpuMs: full.cpuMs,
      sliceBytes: (full.memoryBytes - bare.memoryBytes) / SLICES,
    };
  });
  const samples = (name: "cpuMs" | "sliceBytes") => ({ service: starts.map((each) => each[name]) });
  return [
    figure("5,000 slices, start to ready: CPU", "ms", samples("cpuMs"), atMost(1000)),
    figure("memory, each of 5,000 slices", "bytes", samples("sliceBytes")),
    figure("a slice event to the changed list", "ms", await eventSamples(), atMost(1)),
  ];
}

async function startMeasured(programs: Programs, slices: readonly EndpointSlice[]) {
  using api = serveSlices(slices);
  const kubeconfig = `${WORK}/kubeconfig.json`;
  await Bun.write(kubeconfig, JSON.stringify(kubeconfigOf(api.url)));
  await using service = await startService(programs, {
    ownCore: true,
    args: ["--pool-discovery", "mcs"],
    env: { KUBECONFIG: kubeconfig },
  });
  const cpuMs = service.cpuSecs() * 1000;
  await expectRouter(service, slices.length > 0);
  await Bun.sleep(SETTLE_MS);
  return { cpuMs, memoryBytes: service.memoryBytes() };
}

/** The routers tell whether the slices were understood. */
async function expectRouter(service: Server, isThere: boolean): Promise<void> {
  const text = await (await fetch(`${service.url}/routers`)).text();
  if (text.includes('"replica":') !== isThere) throw new BenchError(`GET /routers says ${text}`);
}

/** How long it takes from an event of one slice to the bytes of the list, in this process. */
async function eventSamples() {
  const silent = () => {};
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const runClock = new RunClock(systemClock, silent);
  const sinks: SliceSink[] = [];
  const directory = new ImportedDirectory({
    openStore: (livePools) =>
      new MemoryStore({ leaseSecs: 86_400, livePools, clock: systemClock, runClock, log }),
    openSlices: (sink) => {
      sinks.push(sink);
      const never = () => undefined;
      return {
        start() {},
        stop() {},
        isSynced: true,
        unreadyReason: never,
        outdatedReason: never,
        watch: { heardAtWallMs: undefined, restarts: UNTOUCHED },
      };
    },
    rule: mcs,
    routers: ROUTERS,
    clock: systemClock,
    log,
  });
  for (const text of registrations(POOLS)) {
    const registration = parseRegistration(text);
    if (registration === undefined) throw new BenchError(`this is no registration: ${text}`);
    directory.register(registration, text);
  }
  const [sink] = sinks;
  const slices = slicesOf(POOLS);
  sink?.replace(slices);
  const medians = await calmest(ROUNDS, async (round) => {
    const samplesMs: number[] = [];
    for (let event = 0; event < EVENTS; event++) {
      const slice = slices[(event * 2) % slices.length];
      if (sink === undefined || slice === undefined) throw new BenchError("there are no slices");
      const before = directory.pools();
      const beganMs = performance.now();
      sink.put({
        ...slice,
        endpoints: [{ addresses: [`10.${round + 1}.${event >> 8}.${event % 256}`] }],
      });
      const after = directory.pools();
      samplesMs.push(performance.now() - beganMs);
      if (after.etags.identity === before.etags.identity) throw new BenchError("the list stayed");
    }
    return median(samplesMs);
  });
  return { service: medians };
}

/** The slices of as many pools as {@link registrations} makes, and of a router. */
function slicesOf(pools: number): EndpointSlice[] {
  const slices = registrations(pools).flatMap((text, index) => {
    const { key } = JSON.parse(text);
    return ["pool-relay", "frontend"].map((part) =>
      slice(key.cluster_id, key.namespace, `${key.dgd_name}-${part}`, index),
    );
  });
  return [...slices.slice(0, -1), slice("aws-west-0", ROUTERS.namespace, ROUTERS.service, 0)];
}

function slice(cluster: string, namespace: string, service: string, index: number): EndpointSlice {
  return {
    metadata: {
      name: `${service}-${cluster}`,
      namespace,
      resourceVersion: "1",
      labels: {
        "multicluster.kubernetes.io/service-name": service,
        "multicluster.kubernetes.io/source-cluster": cluster,
      },
    },
    addressType: "IPv4",
    endpoints: [1, 2].map((host) => ({
      addresses: [`10.${host}.${index >> 8}.${index % 256}`],
      conditions: { ready: true },
      targetRef: { kind: "Pod", name: `${service}-${host}` },
    })),
    ports: [{ name: "http", port: 8000 }],
  };
}

/** An API server that lists slices in pages, and on which nothing ever happens. */
function serveSlices(slices: readonly EndpointSlice[]): Disposable & { readonly url: string } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    fetch(request) {
      const { searchParams } = new URL(request.url);
      if (searchParams.has("watch")) {
        return new Response(new ReadableStream({ start() {} }));
      }
      const from = Number(searchParams.get("continue") ?? 0);
      const to = from + Number(searchParams.get("limit"));
      return Response.json({
        kind: "EndpointSliceList",
        metadata: { resourceVersion: "1", ...(to < slices.length ? { continue: `${to}` } : {}) },
        items: slices.slice(from, to),
      });
    },
  });
  return { url: server.url.origin, [Symbol.dispose]: () => void server.stop(true) };
}

function kubeconfigOf(server: string) {
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "bench",
    contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
    clusters: [{ name: "bench", cluster: { server } }],
    users: [{ name: "bench", user: {} }],
  };
}
