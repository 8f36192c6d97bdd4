import { RegisteredDirectory } from "../src/directory/registered.ts";
import { encode, type Item, PARTITION } from "../src/registrations/dynamodb/item.ts";
import { ItemReader } from "../src/registrations/dynamodb/item-reader.ts";
import { DynamoStore } from "../src/registrations/dynamodb/store.ts";
import type { RegistrationTable } from "../src/registrations/dynamodb/table.ts";
import { systemClock } from "../src/runtime/clock.ts";
import { RunClock } from "../src/runtime/run-clock.ts";
import { calmest, type Rounds } from "./rounds.ts";

/** More often than a service polls, so that a round holds enough of them. */
const POLL_SECS = 0.2;
const ROUND_MS = 1000;
/** As many as the service asks for at a time. */
const PAGE_ITEMS = 250;
/** The regions that items are written in, one after the other. */
export const REGIONS = ["us-west-2", "eu-central-1"] as const;

/**
 * The CPU time from the answers' texts to the list: reading, decoding and merging. The items are as they
 * were at the poll before, or all of them were renewed since.
 */
export async function mergeMs(
  bodies: readonly string[],
  state: "unchanged" | "renewed",
  rounds: Rounds,
): Promise<number[]> {
  const renewedAtMs = Date.now();
  const states = [0, state === "unchanged" ? 0 : 1].map((ms) =>
    pagesOf(itemsOf(bodies, renewedAtMs + ms)),
  );
  let polls = 0;
  const reader = new ItemReader();
  const table: RegistrationTable = {
    check: async () => [],
    async *pages() {
      polls += 1;
      reader.begin();
      for (const page of states[polls % states.length] ?? []) {
        // A page comes over the network; meanwhile the process does other things.
        await new Promise(setImmediate);
        yield reader.page(page).items;
      }
      reader.end();
    },
    write: async () => ({}),
    close() {},
  };
  const silent = () => {};
  const runClock = new RunClock(systemClock, silent);
  const directory = new RegisteredDirectory(
    (livePools) =>
      new DynamoStore({
        table,
        livePools,
        region: REGIONS[0],
        leaseSecs: 86_400,
        heartbeatIntervalSecs: 3600,
        pollIntervalSecs: POLL_SECS,
        replicationGraceSecs: 30,
        skewSecs: 2,
        clock: systemClock,
        runClock,
        log: { debug: silent, info: silent, warn: silent, error: silent },
      }),
    [],
    systemClock,
  );
  const stopBeat = runClock.start(() => directory.expire());
  await directory.open();
  // Until it runs as optimised code.
  await Bun.sleep(ROUND_MS);
  const cpuMs = await calmest(rounds, async () => {
    const [pollsBefore, before] = [polls, process.cpuUsage()];
    await Bun.sleep(ROUND_MS);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / (polls - pollsBefore);
  });
  stopBeat();
  directory.close();
  return cpuMs;
}

/** A table as the answers to Queries tell of it. */
function pagesOf(items: readonly Item[]): string[] {
  // What the service doesn't ask for is left out.
  const asked = items.map(({ pk: _pk, expires_at: _expires, ...attributes }) => attributes);
  return Array.from({ length: Math.ceil(asked.length / PAGE_ITEMS) }, (_, page) =>
    JSON.stringify({ Items: asked.slice(page * PAGE_ITEMS, (page + 1) * PAGE_ITEMS) }),
  );
}

/** Items as replicas of both regions would write them, one after the other. */
export function itemsOf(bodies: readonly string[], renewedAtMs: number): Item[] {
  return bodies.map((text, index) => {
    const { key } = JSON.parse(text);
    const writtenIn = REGIONS[index % REGIONS.length] ?? REGIONS[0];
    const renewal = { renewedAtMs, leaseSecs: 86_400, writtenIn };
    const sk = `${key.cluster_id}/${key.namespace}/${key.dgd_name}`;
    return { pk: { S: PARTITION }, sk: { S: sk }, ...encode(text, renewal) };
  });
}
