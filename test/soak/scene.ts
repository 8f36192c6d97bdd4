import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compiledCommand, Emulator, launchOf, type Table } from "../support/dynamodb.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { getList, poolList } from "../support/relay.ts";
import { Cluster } from "./cluster.ts";
import { harm, harmCluster } from "./faults.ts";
import type { Findings } from "./findings.ts";
import type { Group } from "./group.ts";
import { differsFromTruth } from "./judge.ts";
import { Memory } from "./memory.ts";
import { observe } from "./observer.ts";
import { Pool } from "./pools.ts";
import { Random } from "./random.ts";
import { Replica, type ReplicaParts } from "./replica.ts";
import { Bodies, Router } from "./router.ts";
import { LEASE_MS, POLL_MS, SECS } from "./times.ts";

const TABLE_POOLS = 30;
const MEMORY_POOLS = 8;
/** How long faults go on before everything is to heal. */
const FAULTS_MS = 90_000;
/**
 * How long it may take until every list is right again, once nothing is wrong: a lease after the start
 * of a process or a pause, a poll that DynamoDB's throttling has put off, and with slices the longest
 * wait after a failure. And as long again, for a machine that has other things to do.
 */
const HEAL_MS = { table: 2 * (LEASE_MS + 5 * POLL_MS), slices: 2 * (LEASE_MS + 36_000) } as const;
/** How long everything stays as it is then, while all is checked as ever. */
const CALM_MS = 5000;

/** Everything that takes part. */
export class Scene implements AsyncDisposable {
  readonly #seed: number;
  readonly #findings: Findings;
  readonly #stack: AsyncDisposableStack;
  readonly #groups: readonly Group[];
  readonly #proxies: readonly FaultProxy[];
  readonly #bodies = new Bodies();
  readonly #memory = new Memory();
  /** Whether faults happen, and pools come and go. */
  #isHarmed = false;
  #isOver = false;

  private constructor(
    seed: number,
    findings: Findings,
    stack: AsyncDisposableStack,
    groups: readonly Group[],
    proxies: readonly FaultProxy[],
  ) {
    this.#seed = seed;
    this.#findings = findings;
    this.#stack = stack;
    this.#groups = groups;
    this.#proxies = proxies;
  }

  static async start(seed: number, findings: Findings): Promise<Scene> {
    await using stack = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), "soak-"));
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    const emulator = stack.use(await Emulator.start());
    const table = await emulator.createTable();
    const cluster = await Cluster.start();
    if (cluster !== undefined) stack.use(cluster);
    const tablePools = poolsNamed("shared", TABLE_POOLS);
    const proxies: FaultProxy[] = [];
    const withTable = async (name: string, region: string, more: Partial<ReplicaParts> = {}) => {
      const proxy = stack.use(await FaultProxy.start(emulator.url));
      proxy.pageSize = 7;
      proxies.push(proxy);
      const { launch = {}, isSteady = false, ...rest } = more;
      const { args, env } = launchOfReplica(table, proxy, region);
      return await Replica.start(
        {
          name,
          command: compiledCommand,
          proxy,
          isSteady,
          launch: {
            args: [...args, ...(launch.args ?? [])],
            env: { ...env, ...launch.env },
          },
          ...rest,
        },
        findings,
      );
    };
    const registrations = await Promise.all([
      withTable("table-1", "us-east-1", { isSteady: true }),
      withTable("table-2", "us-east-1"),
      withTable("table-3", "eu-central-1"),
    ]);
    const groups: Group[] = [
      {
        name: "registrations over the table",
        replicas: registrations,
        pools: tablePools,
        cluster: undefined,
        hasTable: true,
      },
    ];
    if (cluster !== undefined) {
      const withSlices = async (name: string, isSteady: boolean) => {
        const gate = stack.use(await cluster.openGate());
        const kubeconfig = join(folder, `${name}.kubeconfig`);
        writeFileSync(kubeconfig, cluster.kubeconfig(gate));
        const launch = { args: ["--pool-discovery", "mcs"], env: { KUBECONFIG: kubeconfig } };
        return await withTable(name, "us-east-1", { gate, isSteady, launch });
      };
      const random = new Random(seed, "slices at the start");
      for (const pool of tablePools) {
        await cluster.change(pool, random, { hasRelays: random.chance(0.8) });
      }
      groups.push({
        name: "mcs over the table",
        replicas: await Promise.all([withSlices("mcs-1", true), withSlices("mcs-2", false)]),
        pools: tablePools,
        cluster,
        hasTable: true,
      });
    }
    for (const [name, isSteady] of [
      ["memory-1", true],
      ["memory-2", false],
    ] as const) {
      const launch = { args: timeFlags };
      const parts = { name, command: compiledCommand, launch, isSteady };
      groups.push({
        name,
        replicas: [await Replica.start(parts, findings)],
        pools: poolsNamed(name, MEMORY_POOLS),
        cluster: undefined,
        hasTable: false,
      });
    }
    return new Scene(seed, findings, stack.move(), groups, proxies);
  }

  get replicas(): readonly Replica[] {
    return this.#groups.flatMap(({ replicas }) => replicas);
  }

  /** Lets faults and healing alternate for so long. Returns a line for each memory that was watched. */
  async run(forMs: number): Promise<string[]> {
    const endsAtMs = Date.now() + forMs;
    const actors = [
      ...this.#relays(),
      ...this.#routers(),
      ...this.#lives(),
      ...this.#troubles(),
      this.#every(5000, () => this.#look()),
    ];
    // An actor that fails has found something that nobody thought of.
    for (const actor of actors) {
      actor.catch((error) => this.#findings.violate(`the soak itself failed: ${error?.stack}`));
    }
    while (Date.now() < endsAtMs && !this.#findings.isHopeless) {
      this.#isHarmed = true;
      const left = endsAtMs - Date.now();
      await this.#sleepWhileHopeful(Math.min(FAULTS_MS, left * 0.7));
      this.#isHarmed = false;
      await this.#heal();
    }
    this.#isOver = true;
    await Promise.allSettled(actors);
    const lines = this.#memory.judge(this.#findings);
    await Promise.all(this.replicas.map((replica) => replica.terminate()));
    return lines;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#stack.disposeAsync();
  }

  #random(stream: string): Random {
    return new Random(this.#seed, stream);
  }

  async #every(ms: number, action: () => Promise<void> | void): Promise<void> {
    while (!this.#isOver) {
      await action();
      await this.#sleep(ms);
    }
  }

  async #sleep(ms: number): Promise<void> {
    const untilMs = Date.now() + ms;
    while (!this.#isOver && Date.now() < untilMs) {
      await Bun.sleep(Math.min(250, Math.max(0, untilMs - Date.now())));
    }
  }

  async #sleepWhileHopeful(ms: number): Promise<void> {
    const untilMs = Date.now() + ms;
    while (!this.#findings.isHopeless && Date.now() < untilMs) await Bun.sleep(250);
  }

  /** Two relays for each pool, which send heartbeats wherever their pool can be registered. */
  #relays(): Promise<void>[] {
    const byPool = new Map<Pool, Replica[]>();
    for (const { pools, replicas } of this.#groups) {
      for (const pool of pools) byPool.set(pool, [...(byPool.get(pool) ?? []), ...replicas]);
    }
    return [...byPool].flatMap(([pool, replicas]) =>
      ["a", "b"].map(async (relay) => {
        const random = this.#random(`relay ${pool.name} ${relay}`);
        while (!this.#isOver) {
          if (pool.isAlive) await pool.beat(random.shuffled(replicas), random, this.#findings);
          await this.#sleep(SECS.heartbeat * 1000 * random.between(0.8, 1.2));
        }
      }),
    );
  }

  /** Three routers for each replica, each with habits of its own. */
  #routers(): Promise<void>[] {
    const habits = [
      { isWaiting: false, coding: "identity" },
      { isWaiting: true, coding: "zstd" },
      { isWaiting: true, coding: "gzip" },
    ] as const;
    return this.#groups.flatMap((group) =>
      group.replicas.flatMap((replica) =>
        habits.map(async (habit) => {
          const random = this.#random(`router ${replica.name} ${habit.coding}`);
          const surroundings = { random, findings: this.#findings, bodies: this.#bodies };
          const router = new Router(replica, group, habit, surroundings);
          while (!this.#isOver) {
            await router.poll();
            await this.#sleep(random.between(300, 1200));
          }
        }),
      ),
    );
  }

  /** Pools die and come again, change what they are, and lose and get relays. */
  #lives(): Promise<void>[] {
    const cluster = this.#groups.find((group) => group.cluster !== undefined)?.cluster;
    const shared = this.#groups[0]?.pools ?? [];
    const pools = new Set(this.#groups.flatMap((group) => group.pools));
    return [...pools].map(async (pool) => {
      const random = this.#random(`life ${pool.name}`);
      while (!this.#isOver) {
        await this.#sleep(random.between(10_000, 90_000));
        if (!this.#isHarmed) continue;
        const isImported = cluster !== undefined && shared.includes(pool);
        switch (random.pick(["changes", "dies", ...(isImported ? ["moves"] : [])])) {
          case "changes":
            pool.change();
            break;
          case "moves":
            await this.#move(pool, random, cluster);
            break;
          default: {
            const untilMs = Date.now() + random.between(20_000, 40_000);
            pool.isAlive = false;
            while (this.#isHarmed && Date.now() < untilMs) await this.#sleep(500);
            pool.isAlive = true;
          }
        }
      }
    });
  }

  /** Changes the slices of a pool, as soon as the API server takes that. */
  async #move(pool: Pool, random: Random, cluster: Cluster | undefined): Promise<void> {
    const hasRelays = random.chance(0.7);
    this.#underWay += 1;
    for (let isDone = false; !isDone && !this.#isOver; ) {
      try {
        await cluster?.change(pool, random, { hasRelays });
        isDone = true;
      } catch {
        await this.#sleep(500);
      }
    }
    this.#underWay -= 1;
  }

  /** What happens to each replica, and to the API server, one thing after another. */
  #troubles(): Promise<void>[] {
    const trouble = async (
      name: string,
      pauseMs: number,
      action: (random: Random) => Promise<void>,
    ) => {
      const random = this.#random(`trouble ${name}`);
      while (!this.#isOver) {
        await this.#sleep(random.between(0.2, 1) * pauseMs);
        if (!this.#isHarmed) continue;
        this.#underWay += 1;
        await action(random);
        this.#underWay -= 1;
      }
    };
    const clusters = this.#groups.flatMap(({ cluster }) =>
      cluster === undefined ? [] : [cluster],
    );
    return [
      ...this.replicas.map((replica) =>
        trouble(replica.name, 12_000, (random) => harm(replica, random, this.#findings)),
      ),
      ...clusters.map((cluster) =>
        trouble("cluster", 240_000, (random) => harmCluster(cluster, random, this.#findings)),
      ),
    ];
  }

  /** How many troubles are not over yet. */
  #underWay = 0;

  async #look(): Promise<void> {
    // What the proxies have recorded is of no use here, and would be all that grows.
    for (const { requests } of this.#proxies) requests.splice(0);
    this.#memory.sample(this.replicas);
    for (const replica of this.replicas) {
      replica.readLog();
      this.#findings.check(!replica.hasCrashed, () => `${replica.name} has ended by itself`);
    }
    await Promise.all(
      this.#groups.flatMap((group) =>
        group.replicas.map((replica) => observe(replica, group, this.#findings)),
      ),
    );
  }

  /** Waits until nothing is wrong any more, and then for each list to be right. */
  async #heal(): Promise<void> {
    while (this.#underWay > 0) await Bun.sleep(50);
    const wellAtMs = Date.now();
    await Promise.all(
      this.#groups.map(async (group) => {
        const deadlineMs = group.cluster === undefined ? HEAL_MS.table : HEAL_MS.slices;
        await Promise.all(
          group.replicas.map((replica) => this.#healed(replica, group, wellAtMs, deadlineMs)),
        );
      }),
    );
    await this.#sleepWhileHopeful(CALM_MS);
    await this.#compare();
  }

  async #healed(replica: Replica, group: Group, wellAtMs: number, deadlineMs: number) {
    for (let fault: string | undefined = "nothing was heard of it"; ; ) {
      try {
        fault = differsFromTruth(poolList((await getList(replica.url)).body), group);
      } catch (error) {
        fault = String(error);
      }
      const tookMs = Date.now() - wellAtMs;
      if (fault === undefined) {
        this.#findings.count("healings");
        this.#findings.most(`longest healing of ${group.name}, in ms`, tookMs);
        return;
      }
      if (tookMs > deadlineMs) {
        this.#findings.violate(
          `${replica.name} is not right ${tookMs} ms after the last fault: ${fault}`,
        );
        return;
      }
      await Bun.sleep(200);
    }
  }

  /** Replicas with the same data tell the same bytes, by the same ETag. */
  async #compare(): Promise<void> {
    for (const { name, replicas } of this.#groups) {
      const lists = await Promise.all(replicas.map(({ url }) => getList(url).catch(String)));
      this.#findings.check(new Set(lists.map((list) => JSON.stringify(list))).size === 1, () => {
        return `the replicas of ${name} do not say the same: ${JSON.stringify(lists)}`;
      });
    }
  }
}

const timeFlags = [
  ...["--heartbeat-interval-secs", String(SECS.heartbeat)],
  ...["--lease-duration-secs", String(SECS.lease)],
];

/** Without the address, which stays the same from one process to the next. */
function launchOfReplica(table: Table, proxy: FaultProxy, region: string) {
  const { args = [], env = {} } = launchOf(table, { ...SECS, region, endpoint: proxy.url });
  return { args: args.slice(args.indexOf("--registration-storage")), env };
}

function poolsNamed(prefix: string, count: number): Pool[] {
  return Array.from({ length: count }, (_, index) => new Pool(`${prefix}-${index}`));
}
