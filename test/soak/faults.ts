import {
  commitThenHang,
  delayed,
  dribble,
  drop,
  type Fault,
  fail,
  hang,
  onLaterPages,
  refuse,
} from "../support/fault-proxy.ts";
import type { Cluster } from "./cluster.ts";
import type { Findings } from "./findings.ts";
import type { Random } from "./random.ts";
import type { Replica } from "./replica.ts";
import { LONGEST_FAULT_MS } from "./times.ts";

/** Does something to a replica, and resolves when that is over. */
type ReplicaFault = (replica: Replica, random: Random) => Promise<void>;

const PROCESS_FAULTS: Readonly<Record<string, ReplicaFault>> = {
  "stopped by SIGSTOP, briefly": (replica, random) => replica.pause(random.between(500, 3000)),
  "stopped by SIGSTOP": (replica, random) => replica.pause(random.between(3000, LONGEST_FAULT_MS)),
};

/** What a replica whose memory is watched does not live through. */
const ENDING_FAULTS: Readonly<Record<string, ReplicaFault>> = {
  "killed and started again": (replica, random) => replica.killAndRestart(random.between(0, 5000)),
  "ended by SIGTERM and started again": (replica, random) =>
    replica.terminateAndRestart(random.between(0, 5000)),
};

const throttle = refuse(400, "ProvisionedThroughputExceededException");
const TABLE_FAULTS: Readonly<Record<string, Fault>> = {
  "the table hangs": hang,
  "the table writes and then hangs": commitThenHang,
  "the table breaks connections": drop,
  "the table dribbles": dribble,
  "the table throttles": throttle,
  "the table fails with 500": fail(500),
  "the table breaks off after a page": onLaterPages(drop),
  "the table throttles after a page": onLaterPages(throttle),
  "the table is slow": delayed(150),
};

const GATE_FAULTS: Readonly<Record<string, ReplicaFault>> = {
  "the API server's connections are cut": async ({ parts }) => parts.gate?.cut(),
  "the API server hangs": async ({ parts }, random) =>
    parts.gate?.hang(random.between(1000, LONGEST_FAULT_MS)),
  "the API server refuses connections": async ({ parts }, random) =>
    parts.gate?.refuse(random.between(1000, LONGEST_FAULT_MS)),
};

/** One fault of a replica, picked at random from those that can be had by it. */
export async function harm(replica: Replica, random: Random, findings: Findings): Promise<void> {
  const { proxy, gate, isSteady } = replica.parts;
  const kinds = [
    ...Object.entries(PROCESS_FAULTS),
    ...(isSteady ? [] : Object.entries(ENDING_FAULTS)),
    ...(proxy === undefined ? [] : Object.entries(TABLE_FAULTS).map(asReplicaFault)),
    ...(gate === undefined ? [] : Object.entries(GATE_FAULTS)),
  ];
  const [what, fault] = random.pick(kinds);
  findings.count(`fault: ${what}`);
  await fault(replica, random);
}

function asReplicaFault([what, fault]: [string, Fault]): [string, ReplicaFault] {
  return [
    what,
    async ({ parts: { proxy } }, random) => {
      const operations = random.pick([["Query"], ["UpdateItem"], ["Query", "UpdateItem"]] as const);
      proxy?.break(fault, ...operations);
      await Bun.sleep(random.between(1000, LONGEST_FAULT_MS));
      proxy?.mend();
    },
  ];
}

/** The API server itself crashes. */
export async function harmCluster(cluster: Cluster, random: Random, findings: Findings) {
  findings.count("fault: the API server crashes");
  await cluster.crash(random.between(0, 10_000));
}
