import { version } from "../package.json" with { type: "json" };
import type { Config, DynamodbConfig, KubernetesConfig } from "./cli/config.ts";
import type { Directory } from "./directory/directory.ts";
import { RegisteredDirectory } from "./directory/registered.ts";
import { Waiters } from "./directory/waiters.ts";
import { BodyReader } from "./http/body.ts";
import { RequestCounts } from "./http/request-counts.ts";
import { createRoutes } from "./http/routes.ts";
import { listen } from "./http/server.ts";
import type { TlsFiles } from "./http/tls-watch.ts";
import type { DynamoStoreOptions } from "./registrations/dynamodb/store.ts";
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
export async function startService(config: Config, surroundings: Surroundings): Promise<Service> {
  const { clock, logs } = surroundings;
  const startedAt = { startedAtMs: clock.monotonicMs(), startedAtWallMs: clock.wallMs() };
  const log = logs("http");
  const tls =
    config.tls && (await (await import("./http/tls-watch.ts")).openTls(config.tls, { clock, log }));
  const runClock = new RunClock(clock, (pausedMs) => {
    logs("main").warn("the process was not running; leases are longer by that time", {
      paused_s: Math.round(pausedMs) / 1000,
    });
  });
  const openStore = await storeOf(config, surroundings, runClock);
  const directory = await directoryOf(config, surroundings, openStore);
  return serve(config, surroundings, { startedAt, tls, runClock, directory });
}

interface Parts {
  readonly startedAt: { readonly startedAtMs: number; readonly startedAtWallMs: number };
  readonly tls: TlsFiles | undefined;
  readonly runClock: RunClock;
  readonly directory: Directory;
}

/**
 * Serves what has been opened.
 *
 * @throws ServiceError `startup` when the address can't be had
 */
function serve(
  config: Config,
  { clock, logs }: Surroundings,
  { startedAt, tls, runClock, directory }: Parts,
): Service {
  const log = logs("main");
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
  surroundings: Surroundings,
  openStore: OpenStore,
): Promise<Directory> {
  return config.mode === "registrations"
    ? new RegisteredDirectory(openStore, config.routers, surroundings.clock)
    : importedDirectoryOf(config, surroundings, openStore);
}

async function importedDirectoryOf(
  { mode, routerService }: KubernetesConfig,
  { clock, logs }: Surroundings,
  openStore: OpenStore,
): Promise<Directory> {
  const [{ openSliceApi }, { Reflector }, { ImportedDirectory }, rule] = await Promise.all([
    import("./kubernetes/client.ts"),
    import("./kubernetes/reflector.ts"),
    import("./directory/imported.ts"),
    mode === "karmada"
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
    routers: routerService,
    clock,
    log,
  });
}

/** What makes the store that the configuration asks for. Loads nothing that it doesn't need. */
async function storeOf(
  { storage, leaseDurationSecs: leaseSecs, heartbeatIntervalSecs }: Config,
  { clock, logs }: Surroundings,
  runClock: RunClock,
): Promise<OpenStore> {
  const common = { leaseSecs, clock, runClock, log: logs("registrations") };
  return storage.store === "memory"
    ? (livePools) => new MemoryStore({ ...common, livePools })
    : dynamoStoreOf(storage, { ...common, heartbeatIntervalSecs });
}

async function dynamoStoreOf(
  { store: _, table: tableName, region, endpointUrl, ...timing }: DynamodbConfig,
  common: Omit<DynamoStoreOptions, keyof DynamodbConfig | "livePools">,
): Promise<OpenStore> {
  const { openAwsTable } = await import("./registrations/dynamodb/aws-table.ts");
  const { DynamoStore } = await import("./registrations/dynamodb/store.ts");
  const opened = await openAwsTable({ tableName, region, endpointUrl });
  return (livePools) => new DynamoStore({ ...common, ...timing, ...opened, livePools });
}
