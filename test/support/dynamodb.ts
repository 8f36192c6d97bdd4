import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AttributeValue,
  CreateTableCommand,
  DeleteItemCommand,
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import {
  endAll,
  freePort,
  type Launch,
  Process,
  projectRoot,
  Service,
  SOON_MS,
} from "./service.ts";
import { until } from "./until.ts";

const modules = join(projectRoot, "node_modules");

/** A program that speaks as DynamoDB does. */
export interface EmulatorProgram {
  readonly name: string;
  readonly command: readonly string[];
  readonly argsOf: (port: number, dbPath: string | undefined) => string[];
  /** What it says once it serves. */
  readonly serving: RegExp;
  readonly hasTtl: boolean;
}

export const dynoxide: EmulatorProgram = {
  name: "dynoxide",
  command: [join(modules, "@dynoxide/linux-x64/dynoxide"), "serve"],
  argsOf: (port, dbPath) => [
    ...["--host", "127.0.0.1", "--port", String(port)],
    ...(dbPath === undefined ? [] : ["--db-path", dbPath]),
  ],
  serving: /listening on/,
  hasTtl: true,
};

/** Knows TTL only as something that is off. */
export const dynalite: EmulatorProgram = {
  name: "dynalite",
  command: [Bun.which("node") ?? process.execPath, join(modules, "dynalite/cli.js")],
  argsOf: (port) => ["--host", "127.0.0.1", "--port", String(port), "--createTableMs", "0"],
  serving: /listening at/,
  hasTtl: false,
};

/** Whether an emulator can be run here; says so where it can't. */
export function isInstalled({ name, command }: EmulatorProgram): boolean {
  const missing = command.find((part) => part.startsWith("/") && !existsSync(part));
  if (missing !== undefined) {
    console.warn(`tests against ${name} are skipped: there is no ${missing} on this platform`);
  }
  return missing === undefined;
}

export type Item = Record<string, AttributeValue>;

export const TABLE_KEY: readonly KeyAttribute[] = [
  { name: "pk", type: "S", use: "HASH" },
  { name: "sk", type: "S", use: "RANGE" },
];

export interface KeyAttribute {
  readonly name: string;
  readonly type: "S" | "N" | "B";
  readonly use: "HASH" | "RANGE";
}

export interface TableShape {
  readonly key?: readonly KeyAttribute[];
  /** The attribute that TTL looks at; null for no TTL. */
  readonly ttl?: string | null;
}

let tables = 0;

/** An emulator's process. */
export class Emulator extends Process {
  readonly program: EmulatorProgram;
  readonly url: string;
  readonly client: DynamoDBClient;

  private constructor(program: EmulatorProgram, port: number, dbPath: string | undefined) {
    super(program.command, { args: program.argsOf(port, dbPath) });
    this.program = program;
    this.url = `http://127.0.0.1:${port}`;
    this.client = new DynamoDBClient({
      endpoint: this.url,
      region: "us-east-1",
      credentials: { accessKeyId: "test", secretAccessKey: "test" },
    });
  }

  /** Starts one with an empty memory on a free port, unless it is told otherwise. */
  static async start(
    program: EmulatorProgram = dynoxide,
    { port, dbPath }: { readonly port?: number; readonly dbPath?: string } = {},
  ): Promise<Emulator> {
    // Somebody else may take the free port before it does.
    for (let attempt = 1; ; attempt += 1) {
      const emulator = new Emulator(program, port ?? (await freePort()), dbPath);
      const serves = await until(`${program.name} to serve`, () => {
        if (program.serving.test(emulator.stdout + emulator.stderr)) return true;
        return emulator.isRunning ? undefined : false;
      });
      if (serves) return emulator;
      if (attempt === 3) throw new Error(`${program.name} does not start\n${emulator.said}`);
    }
  }

  /** Makes a table that no other test has, of the shape that the service needs unless it is told. */
  async createTable({ key = TABLE_KEY, ttl = "expires_at" }: TableShape = {}): Promise<Table> {
    tables += 1;
    const name = `pools-${process.pid}-${tables}`;
    await this.client.send(
      new CreateTableCommand({
        TableName: name,
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: key.map(({ name, use }) => ({ AttributeName: name, KeyType: use })),
        AttributeDefinitions: key.map(({ name, type }) => ({
          AttributeName: name,
          AttributeType: type,
        })),
      }),
    );
    await until("the table to be there", async () => {
      const { Table } = await this.client.send(new DescribeTableCommand({ TableName: name }));
      return Table?.TableStatus === "ACTIVE" ? true : undefined;
    });
    if (ttl !== null && this.program.hasTtl) {
      await this.client.send(
        new UpdateTimeToLiveCommand({
          TableName: name,
          TimeToLiveSpecification: { AttributeName: ttl, Enabled: true },
        }),
      );
    }
    return new Table(this.client, this.url, name);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
    await super[Symbol.asyncDispose]();
  }
}

/** A table, behind the service's back. */
export class Table {
  readonly endpoint: string;
  readonly name: string;
  readonly #client: DynamoDBClient;

  constructor(client: DynamoDBClient, endpoint: string, name: string) {
    this.#client = client;
    this.endpoint = endpoint;
    this.name = name;
  }

  async put(item: Item): Promise<void> {
    await this.#client.send(new PutItemCommand({ TableName: this.name, Item: item }));
  }

  /** Sets attributes of an item that is there. */
  async set(sk: string, attributes: Item): Promise<void> {
    const names = Object.keys(attributes);
    await this.#client.send(
      new UpdateItemCommand({
        TableName: this.name,
        Key: keyOf(sk),
        UpdateExpression: `SET ${names.map((name) => `${name} = :${name}`).join(", ")}`,
        ExpressionAttributeValues: Object.fromEntries(
          Object.entries(attributes).map(([name, value]) => [`:${name}`, value]),
        ),
      }),
    );
  }

  async get(sk: string): Promise<Item | undefined> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.name, Key: keyOf(sk), ConsistentRead: true }),
    );
    return Item;
  }

  async delete(sk: string): Promise<void> {
    await this.#client.send(new DeleteItemCommand({ TableName: this.name, Key: keyOf(sk) }));
  }
}

function keyOf(sk: string): Item {
  return { pk: { S: "pool" }, sk: { S: sk } };
}

// Nothing of the developer's own AWS settings is found here.
const emptyHome = mkdtempSync(join(tmpdir(), "discovery-home-"));

/** Ends every process that the tests have started, and takes away what those have left behind. */
export async function cleanUp(): Promise<void> {
  await endAll();
  rmSync(emptyHome, { recursive: true, force: true });
}

/** An AWS environment with nothing in it: no keys, no files, no network. */
export const bareAwsEnvironment = { HOME: emptyHome, AWS_EC2_METADATA_DISABLED: "true" };

/** An AWS environment with keys, which an emulator takes whatever they are. */
export const awsEnvironment = {
  ...bareAwsEnvironment,
  AWS_ACCESS_KEY_ID: "AKIATEST",
  AWS_SECRET_ACCESS_KEY: "not-a-secret",
};

export const sourceCommand = [process.execPath, "src/main.ts"];
export const compiledFile = join(projectRoot, "dist/global-discovery-service");
export const compiledCommand = [compiledFile];

/** How a replica is started. Times are in seconds, short so that tests are quick. */
export interface ReplicaOptions {
  readonly command?: readonly string[];
  /** In place of the table's own; null for no flag. */
  readonly endpoint?: string | null;
  /** Null for no flag. */
  readonly region?: string | null;
  readonly heartbeat?: number;
  readonly lease?: number;
  readonly poll?: number;
  readonly skew?: number;
  readonly grace?: number;
  /** In place of the environment with keys. */
  readonly env?: Launch["env"];
}

/** The arguments and the environment of a replica. */
export function launchOf(
  table: { readonly name: string; readonly endpoint: string },
  {
    endpoint = table.endpoint,
    region = "us-east-1",
    heartbeat = 1,
    lease = 3,
    poll = 1,
    skew = 0,
    grace = 2,
    env = awsEnvironment,
  }: ReplicaOptions = {},
): Launch {
  return {
    args: [
      ...["--listen", "127.0.0.1:0"],
      ...["--registration-storage", "dynamodb"],
      ...["--dynamodb-table", table.name],
      ...(endpoint === null ? [] : ["--dynamodb-endpoint-url", endpoint]),
      ...(region === null ? [] : ["--dynamodb-region", region]),
      ...["--heartbeat-interval-secs", String(heartbeat)],
      ...["--lease-duration-secs", String(lease)],
      ...["--dynamodb-poll-interval-secs", String(poll)],
      ...["--lease-skew-secs", String(skew)],
      ...["--dynamodb-replication-grace-secs", String(grace)],
    ],
    env,
  };
}

/** Starts a replica, and waits until it serves; it may not have read the table yet. */
export async function startReplica(
  table: { readonly name: string; readonly endpoint: string },
  options: ReplicaOptions = {},
): Promise<Service> {
  return await inTurn(() =>
    Service.start(options.command ?? sourceCommand, launchOf(table, options)),
  );
}

let turns = 2;
const waiting: (() => void)[] = [];

/**
 * Starts only so many processes at once. What tests do otherwise is mostly to wait, but a start
 * takes all of a core, and twenty of them on two would leave none the time to be on time.
 */
export async function inTurn<T>(start: () => Promise<T>): Promise<T> {
  if (turns === 0) await new Promise<void>((done) => waiting.push(done));
  else turns -= 1;
  try {
    return await start();
  } finally {
    const next = waiting.shift();
    if (next === undefined) turns += 1;
    else next();
  }
}

/** Long enough for a few leases and polls, one after the other, on a machine that is busy. */
export const PATIENT_MS = 2 * SOON_MS;
