import {
  BatchWriteItemCommand,
  CreateTableCommand,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { BenchError } from "./errors.ts";
import { atMost, below, type Figure, figure } from "./figure.ts";
import { load } from "./load.ts";
import { itemsOf, mergeMs, REGIONS } from "./merge.ts";
import { LOAD_CORE, pinned } from "./pin.ts";
import { type Programs, saveBodies } from "./programs.ts";
import { fetchList, registrations } from "./registrations.ts";
import { calmest, type Rounds } from "./rounds.ts";
import { freePort, type Server, startService } from "./server.ts";

const ITEMS = 10_000;
const POLL_SECS = 2;
const ROUNDS: Rounds = { wanted: 3, spare: 1 };
const POLLS_A_ROUND = 2;
/** How many of the items are renewed between two rounds. */
const RENEWED = 250;
const LOAD_SECS = 3;
const TABLE = "pools";
const KEYS = { accessKeyId: "bench", secretAccessKey: "bench" };
const EMULATOR = `${import.meta.dir}/../node_modules/@dynoxide/linux-x64/dynoxide`;

/** A replica that polls a table of 10,000 items in an emulator, which are renewed slowly. */
export async function tableFigures(programs: Programs): Promise<Figure[]> {
  const bodies = registrations(ITEMS);
  // By itself: the emulator and the service would have the cores busy.
  const merging: Figure[] = [];
  for (const state of ["unchanged", "renewed"] as const) {
    const samples = { service: await mergeMs(bodies, state, ROUNDS) };
    merging.push(figure(`of that, decoding and merging: all ${state}`, "ms", samples, atMost(40)));
  }
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
  const bodiesPath = await saveBodies(bodies.slice(0, RENEWED));
  const { perCoreSecond } = await load({ server: service, bodiesPath }, LOAD_SECS).rates();
  const each = (name: "cpuMs" | "p99Ms") => ({ service: samples.map((sample) => sample[name]) });
  return [
    figure("a poll of 10,000 items: CPU of all threads", "ms", each("cpuMs")),
    ...merging,
    figure("GET /pools meanwhile, p99", "ms", each("p99Ms"), below(10)),
    figure("POST unchanged, written to the table", "/core s", { service: [perCoreSecond] }),
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

/** What DynamoDB takes in one request. */
const BATCH = 25;

async function renew(client: DynamoDBClient, bodies: readonly string[]): Promise<void> {
  const puts = itemsOf(bodies, Date.now()).map((item) => ({ PutRequest: { Item: item } }));
  for (let start = 0; start < puts.length; start += BATCH) {
    const request = { RequestItems: { [TABLE]: puts.slice(start, start + BATCH) } };
    await client.send(new BatchWriteItemCommand(request));
  }
}
