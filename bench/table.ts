import {
  BatchWriteItemCommand,
  CreateTableCommand,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { RegisteredDirectory } from "../src/directory/registered.ts";
import { encode, type Item, PARTITION } from "../src/registrations/dynamodb/item.ts";
import { ItemReader } from "../src/registrations/dynamodb/item-reader.ts";
import { DynamoStore } from "../src/registrations/dynamodb/store.ts";
import type { RegistrationTable } from "../src/registrations/dynamodb/table.ts";
import { systemClock } from "../src/runtime/clock.ts";
import { RunClock } from "../src/runtime/run-clock.ts";
import { BenchError } from "./errors.ts";
import { atMost, below, type Figure, figure } from "./figure.ts";
import { LOAD_CORE, pinned } from "./pin.ts";
import type { Programs } from "./programs.ts";
import { fetchList, registrations } from "./registrations.ts";
import { calmest, type Rounds } from "./rounds.ts";
import { freePort, type Server, startService } from "./server.ts";

const ITEMS = 10_000;
const POLL_SECS = 2;
const ROUNDS: Rounds = { wanted: 5, spare: 5 };
const POLLS_A_ROUND = 2;
/** How many of the items are renewed between two rounds. */
const RENEWED = 250;
const REGIONS = ["us-west-2", "eu-central-1"] as const;
const TABLE = "pools";
const KEYS = { accessKeyId: "bench", secretAccessKey: "bench" };
const EMULATOR = `${import.meta.dir}/../node_modules/@dynoxide/linux-x64/dynoxide`;

/** A replica that polls a table of 10,000 items in an emulator, which are renewed slowly. */
export async function tableFigures(programs: Programs): Promise<Figure[]> {
  const bodies = registrations(ITEMS);
  // By itself: the emulator and the service would have the cores busy.
  const merging = [await mergeFigure(bodies, "unchanged"), await mergeFigure(bodies, "renewed")];
  await using emulator = await startEmulator();
  const { client } = emulator;
  await createTable(client);
  await renew(client, bodies);
  await using service = await startService(programs, {
    ownCore: true,
    args: [
      ...["--registration-storage", "dynamodb", "--dynamodb-table", TABLE],
      ...["--dynamodb-region", REGIONS[0], "--dynamodb-endpoint-url", emulator.url],
      ...["--dynamodb-poll-interval-secs", `${POLL_SECS}`],
    ],
    env: {
      AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    },
  });
  const listed = (await (await fetchList(service)).text()).match(/"key":/g)?.length ?? 0;
  if (listed !== ITEMS) throw new BenchError(`${listed} of ${ITEMS} items are listed`);

  const samples = await calmest(ROUNDS, async (round) => {
    await renew(client, bodies.slice(round * RENEWED, (round + 1) * RENEWED));
    const before = service.cpuSecs();
    await Bun.sleep(POLLS_A_ROUND * POLL_SECS * 1000);
    const cpuMs = ((service.cpuSecs() - before) * 1000) / POLLS_A_ROUND;
    return { cpuMs, p99Ms: await listP99Ms(service) };
  });
  const each = (name: "cpuMs" | "p99Ms") => ({ service: samples.map((sample) => sample[name]) });
  return [
    figure("a poll of 10,000 items: CPU of all threads", "ms", each("cpuMs")),
    ...merging,
    figure("GET /pools meanwhile, p99", "ms", each("p99Ms"), below(10)),
  ];
}

/** How long a client waits for the list in the worst of a hundred cases, over a few polls. */
async function listP99Ms(service: Server): Promise<number> {
  const client = [process.execPath, `${import.meta.dir}/list-client.ts`];
  const command = [...client, `${service.url}/pools`, `${POLLS_A_ROUND * POLL_SECS}`];
  const child = Bun.spawn(pinned(LOAD_CORE, command), { stdout: "pipe", stderr: "pipe" });
  const [output, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const p99Ms = Number.parseFloat(output);
  if (Number.isNaN(p99Ms)) throw new BenchError(`the client of the list failed: ${complaint}`);
  return p99Ms;
}

async function startEmulator() {
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  // AWS does not share a core with those who wait for the list.
  const command = ["nice", "-n", "19", EMULATOR, "serve", "--port", `${port}`];
  const child = Bun.spawn(pinned(LOAD_CORE, command), {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const client = new DynamoDBClient({ region: REGIONS[0], endpoint: url, credentials: KEYS });
  return {
    url,
    client,
    async [Symbol.asyncDispose]() {
      process.off("exit", kill);
      kill();
      await child.exited;
    },
  };
}

async function createTable(client: DynamoDBClient): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName: TABLE,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [
        { AttributeName: "pk", AttributeType: "S" },
        { AttributeName: "sk", AttributeType: "S" },
      ],
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
    }),
  );
  await client.send(
    new UpdateTimeToLiveCommand({
      TableName: TABLE,
      TimeToLiveSpecification: { AttributeName: "expires_at", Enabled: true },
    }),
  );
}

/**
 * The CPU time from the answers' texts to the list: reading, decoding and merging. The items are as they
 * were at the poll before, or all of them were renewed since.
 */
async function mergeFigure(
  bodies: readonly string[],
  state: "unchanged" | "renewed",
): Promise<Figure> {
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
      for (const page of states[polls % states.length] ?? []) yield reader.page(page).items;
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
        pollIntervalSecs: MERGE_POLL_SECS,
        replicationGraceSecs: 30,
        skewSecs: 2,
        clock: systemClock,
        runClock,
        log: { debug: silent, info: silent, warn: silent, error: silent },
      }),
    [],
    systemClock,
  );
  await directory.open();
  // Until it runs as optimised code.
  await Bun.sleep(MERGE_ROUND_MS);
  const cpuMs = await calmest(ROUNDS, async () => {
    const [pollsBefore, before] = [polls, process.cpuUsage()];
    await Bun.sleep(MERGE_ROUND_MS);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / (polls - pollsBefore);
  });
  directory.close();
  return figure(
    `of that, decoding and merging: all ${state}`,
    "ms",
    { service: cpuMs },
    atMost(40),
  );
}

/** A table as the answers to Queries tell of it. */
function pagesOf(items: readonly Item[]): string[] {
  // What the service doesn't ask for is left out.
  const asked = items.map(({ pk: _pk, expires_at: _expires, ...attributes }) => attributes);
  return Array.from({ length: asked.length / PAGE_ITEMS }, (_, page) =>
    JSON.stringify({ Items: asked.slice(page * PAGE_ITEMS, (page + 1) * PAGE_ITEMS) }),
  );
}

/** More often than a service polls, so that a round holds enough of them. */
const MERGE_POLL_SECS = 0.2;
const MERGE_ROUND_MS = 2000;
/** As many as the service asks for at a time. */
const PAGE_ITEMS = 250;

/** Items as replicas of both regions would write them, one after the other. */
function itemsOf(bodies: readonly string[], renewedAtMs: number): Item[] {
  return bodies.map((text, index) => {
    const { key } = JSON.parse(text);
    const writtenIn = REGIONS[index % REGIONS.length] ?? REGIONS[0];
    const renewal = { renewedAtMs, leaseSecs: 86_400, writtenIn };
    const sk = `${key.cluster_id}/${key.namespace}/${key.dgd_name}`;
    return { pk: { S: PARTITION }, sk: { S: sk }, ...encode(text, renewal) };
  });
}

/** What DynamoDB takes in one request. */
const BATCH = 25;

async function renew(client: DynamoDBClient, bodies: readonly string[]): Promise<void> {
  const puts = itemsOf(bodies, Date.now()).map((item) => ({ PutRequest: { Item: item } }));
  for (let start = 0; start < puts.length; start += BATCH) {
    const request = { RequestItems: { [TABLE]: puts.slice(start, start + BATCH) } };
    await client.send(new BatchWriteItemCommand(request));
  }
}
