import { version } from "../package.json" with { type: "json" };
import type { Config } from "./cli/config.ts";
import type { Directory } from "./directory/directory.ts";
import { RegisteredDirectory } from "./directory/registered.ts";
import { Waiters } from "./directory/waiters.ts";
import { BodyReader } from "./http/body.ts";
import { RequestCounts } from "./http/request-counts.ts";
import { createRoutes } from "./http/routes.ts";
import { listen } from "./http/server.ts";
import { MemoryStore } from "./registrations/memory.ts";
import type { LivePools, RegistrationStore } from "./registrations/store.ts";
import type { Clock } from "./runtime/clock.ts";
import type { createLogs } from "./runtime/log.ts";
import { RunClock } from "./runtime/run-clock.ts";

export interface Surroundings {
  readonly clock: Clock;
  readonly logs: ReturnType<typeof createLogs>;
}

/** A service that is serving. */
export interface Service {
  readonly url: string;
  /** Resolves once the lists can be told; rejects with a ServiceError `startup` if never. */
  readonly opened: Promise<void>;
  /** Stops serving and resolves when the running requests are done; `reason` goes to the log. */
  stop(reason: string): Promise<void>;
}

/**
 * Puts the parts together and starts them.
 *
 * @throws ServiceError `startup` when it can't
 */
export async function startService(
  config: Config,
  { clock, logs }: Surroundings,
): Promise<Service> {
  const log = logs("main");
  const startedAt = { startedAtMs: clock.monotonicMs(), startedAtWallMs: clock.wallMs() };
  const tls =
    config.tls &&
    (await (await import("./http/tls-watch.ts")).openTls(config.tls, { clock, log: logs("http") }));

  const runClock = new RunClock(clock, (pausedMs) => {
    log.warn("the process was not running; leases are longer by that time", {
      paused_s: Math.round(pausedMs) / 1000,
    });
  });
  const openStore = await storeOf(config, { clock, logs }, runClock);
  const directory = await directoryOf(config, { clock, logs }, openStore);
  const waiters = new Waiters(directory, clock);

  const requests = new RequestCounts(clock);
  const build = { version, mode: config.mode, store: config.storage.store };
  let stopping = false;
  const routes = createRoutes({
    directory,
    waiters,
    bodies: new BodyReader(clock, logs("http")),
    heartbeatIntervalSecs: config.heartbeatIntervalSecs,
    leaseDurationSecs: config.leaseDurationSecs,
    async metrics() {
      // Loaded with the first scrape: counting needs nothing of it.
      const { metricsText } = await import("./http/metrics.ts");
      return metricsText({ build, directory, waiters, requests, runClock });
    },
    isStopping: () => stopping,
    service: { version, mode: config.mode, store: config.storage.store, ...startedAt },
    clock,
  });
  const server = listen({
    address: config.listen,
    tls: tls?.options,
    routes,
    requests,
    clock,
    log: logs("http"),
  });
  const stopTlsWatch = tls?.watch(server.replaceTls);
  const stopBeat = runClock.start(() => directory.expire());
  log.info("serving", {
    version,
    address: server.url,
    mode: config.mode,
    store: config.storage.store,
    lease_s: config.leaseDurationSecs,
    heartbeat_s: config.heartbeatIntervalSecs,
  });

  return {
    url: server.url,
    opened: directory.open(),
    async stop(reason) {
      stopping = true;
      log.info("stopping: no new connections, running requests may finish", { reason });
      waiters.end();
      stopTlsWatch?.();
      const finished = await server.drain();
      stopBeat();
      directory.close();
      if (!finished) log.warn("requests that were still running are cut");
      log.info("stopped", { reason });
    },
  };
}

type OpenStore = (livePools: LivePools) => RegistrationStore;

/** The directory of the mode that the configuration asks for. Loads nothing that it doesn't need. */
async function directoryOf(
  config: Config,
  { clock, logs }: Surroundings,
  openStore: OpenStore,
): Promise<Directory> {
  if (config.mode === "registrations") {
    return new RegisteredDirectory(openStore, config.routers, clock);
  }
  const [{ openSliceApi }, { Reflector }, { ImportedDirectory }, rule] = await Promise.all([
    import("./kubernetes/client.ts"),
    import("./kubernetes/reflector.ts"),
    import("./directory/imported.ts"),
    config.mode === "karmada"
      ? import("./kubernetes/karmada.ts").then(({ karmada }) => karmada)
      : import("./kubernetes/mcs.ts").then(({ mcs }) => mcs),
  ]);
  const { labelSelector } = rule;
  const log = logs("kubernetes");
  const api = await openSliceApi({ labelSelector, env: process.env, clock, log });
  return new ImportedDirectory({
    openStore,
    openSlices: (sink) => new Reflector({ api, sink, clock, log }),
    rule,
    routers: config.routerService,
    clock,
    log,
  });
}

/** What makes the store that the configuration asks for. Loads nothing that it doesn't need. */
async function storeOf(
  config: Config,
  { clock, logs }: Surroundings,
  runClock: RunClock,
): Promise<OpenStore> {
  const { storage, leaseDurationSecs: leaseSecs } = config;
  const common = { leaseSecs, clock, runClock, log: logs("registrations") };
  if (storage.store === "memory") {
    return (livePools) => new MemoryStore({ ...common, livePools });
  }
  const { openAwsTable } = await import("./registrations/dynamodb/aws-table.ts");
  const { DynamoStore } = await import("./registrations/dynamodb/store.ts");
  const { table, region } = await openAwsTable({
    tableName: storage.table,
    region: storage.region,
    endpointUrl: storage.endpointUrl,
  });
  return (livePools) =>
    new DynamoStore({
      ...common,
      table,
      region,
      heartbeatIntervalSecs: config.heartbeatIntervalSecs,
      pollIntervalSecs: storage.pollIntervalSecs,
      replicationGraceSecs: storage.replicationGraceSecs,
      skewSecs: storage.skewSecs,
      livePools,
    });
}
