import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  QueryCommand,
  type TableDescription,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { FetchHttpHandler } from "@smithy/fetch-http-handler";
import { directFetch } from "../../runtime/direct-fetch.ts";
import { messageOf, ServiceError } from "../../runtime/errors.ts";
import { type Decoded, encode, type Item, itemOf, PARTITION } from "./item.ts";
import { ItemReader } from "./item-reader.ts";
import { type RegistrationTable, TableError, type Write } from "./table.ts";

export interface AwsTableOptions {
  readonly tableName: string;
  /** Undefined: as the AWS environment says. */
  readonly region: string | undefined;
  /** Undefined: AWS's own, or what `AWS_ENDPOINT_URL_DYNAMODB` says. */
  readonly endpointUrl: string | undefined;
}

/** What the listing needs of an item; the rest is not sent. */
const READ_ATTRIBUTES = "sk, registration, renewed_at, lease_s, written_in";

/**
 * A page is parsed without a break, and requests wait meanwhile: 250 items take a millisecond or
 * two, where a full page of 1 MB may hold thousands.
 */
const PAGE_ITEMS = 250;

/**
 * Makes the table as AWS, or what speaks like it, serves it. Connects to nothing yet.
 *
 * @throws ServiceError `startup` where no region is set
 */
export async function openAwsTable(
  options: AwsTableOptions,
): Promise<{ table: RegistrationTable; region: string }> {
  const client = new DynamoDBClient({
    // When throttled they take 2.2 s, which a default write has; a fourth would come too late, and what
    // was throttled would be told as a time-out.
    maxAttempts: 3,
    // Receives outside of the thread that answers requests, unlike Node's HTTP as Bun has it.
    requestHandler: new FetchHttpHandler({
      keepAlive: true,
      // A `fetch` in all but `preconnect`, which nobody calls.
      customFetch: directFetch as typeof fetch,
    }),
    ...(options.region === undefined ? {} : { region: options.region }),
    ...(options.endpointUrl === undefined ? {} : { endpoint: options.endpointUrl }),
  });
  let region: string;
  try {
    region = await client.config.region();
  } catch (error) {
    throw new ServiceError(
      "startup",
      `no AWS region is set: give --dynamodb-region, or set AWS_REGION (${messageOf(error)})`,
    );
  }
  return { table: new AwsTable(client, options.tableName, region), region };
}

class AwsTable implements RegistrationTable {
  readonly #client: DynamoDBClient;
  readonly #name: string;
  readonly #region: string;
  readonly #reader = new ItemReader();

  constructor(client: DynamoDBClient, name: string, region: string) {
    this.#client = client;
    this.#name = name;
    this.#region = region;
  }

  async check(signal: AbortSignal): Promise<string[]> {
    // Asked for by themselves, so that their absence is told from a refusal.
    await this.#attempt("credentials", () => this.#client.config.credentials());
    const oddities: string[] = [];
    const unlessDenied = async <T>(operation: string, action: () => Promise<T>) => {
      try {
        return await this.#attempt(operation, action);
      } catch (error) {
        if (!(error instanceof TableError) || error.fault !== "denied" || error.isIdentity) {
          throw error;
        }
        oddities.push(error.message);
        return undefined;
      }
    };
    // What is made of an answer belongs to the attempt: it may not be in the form that it should be.
    await unlessDenied("dynamodb:DescribeTable", async () => {
      const command = new DescribeTableCommand({ TableName: this.#name });
      const { Table } = await this.#client.send(command, { abortSignal: signal });
      if (Table !== undefined) this.#checkKeys(Table);
    });
    const hasTtl = await unlessDenied("dynamodb:DescribeTimeToLive", async () => {
      const command = new DescribeTimeToLiveCommand({ TableName: this.#name });
      const { TimeToLiveDescription } = await this.#client.send(command, { abortSignal: signal });
      const { TimeToLiveStatus: status, AttributeName: attribute } = TimeToLiveDescription ?? {};
      return status?.startsWith("ENABL") === true && attribute === "expires_at";
    });
    if (hasTtl === false) {
      oddities.push(
        `${this.#where()} has no TTL on expires_at, so pools that are long gone stay in it and ` +
          "each read costs more; turn it on with aws dynamodb update-time-to-live",
      );
    }
    return oddities;
  }

  #checkKeys({ KeySchema = [], AttributeDefinitions = [], TableStatus }: TableDescription): void {
    if (TableStatus === "CREATING" || TableStatus === "DELETING") {
      throw new TableError("error", `${this.#where()} is ${TableStatus.toLowerCase()}`);
    }
    const keys = KeySchema.map(({ AttributeName, KeyType }) => {
      const type = AttributeDefinitions.find((other) => other.AttributeName === AttributeName);
      return `${AttributeName} (${type?.AttributeType}, ${KeyType})`;
    }).join(", ");
    if (keys !== "pk (S, HASH), sk (S, RANGE)") {
      throw new TableError(
        "error",
        `${this.#where()} has the key ${keys}; it needs pk (S, HASH), sk (S, RANGE). ` +
          "The key of a table can't be changed: create another one",
        { isDefinite: true },
      );
    }
  }

  async *pages(signal: AbortSignal): AsyncGenerator<readonly Decoded[]> {
    this.#reader.begin();
    let start: Item | undefined;
    do {
      const command = new QueryCommand({
        TableName: this.#name,
        ConsistentRead: true,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": { S: PARTITION } },
        ProjectionExpression: READ_ATTRIBUTES,
        Limit: PAGE_ITEMS,
        ExclusiveStartKey: start,
      });
      const answer = takeAnswer(command);
      const page = await this.#attempt("dynamodb:Query", async () => {
        await this.#client.send(command, { abortSignal: signal });
        return this.#reader.page(answer.text);
      });
      yield page.items;
      start = page.next;
    } while (start !== undefined);
    this.#reader.end();
  }

  async write(write: Write, signal: AbortSignal): Promise<Item> {
    const { id, text, renewal, present, isLate } = write;
    const attributes = Object.entries(encode(text, renewal));
    const assignments = attributes.map(([name]) =>
      name === "registration" && present === "kept"
        ? `${name} = if_not_exists(${name}, :${name})`
        : `${name} = :${name}`,
    );
    const command = new UpdateItemCommand({
      TableName: this.#name,
      Key: { pk: { S: PARTITION }, sk: { S: id } },
      UpdateExpression: `SET ${assignments.join(", ")}`,
      ExpressionAttributeValues: Object.fromEntries(
        attributes.map(([name, value]) => [`:${name}`, value]),
      ),
      ReturnValues: "UPDATED_OLD",
    });
    // Right before each attempt is sent. The timer of the deadline may be behind it in the queue.
    command.middlewareStack.add(
      (next) => (args) => {
        if (isLate()) throw new TableError("timeout", "this process could not send it in time");
        return next(args);
      },
      { step: "finalizeRequest", priority: "low" },
    );
    return await this.#attempt("dynamodb:UpdateItem", async () => {
      const { Attributes } = await this.#client.send(command, { abortSignal: signal });
      return Attributes === undefined ? {} : itemOf(Attributes);
    });
  }

  close(): void {
    this.#client.destroy();
  }

  #where(): string {
    return `the table ${this.#name} in ${this.#region}`;
  }

  async #attempt<T>(operation: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      throw error instanceof TableError ? error : this.#faultOf(error, operation);
    }
  }

  /** Sorts what the SDK throws, whose names differ from one layer to the next. */
  #faultOf(error: unknown, operation: string): TableError {
    const { name, message, code, status } = detailsOf(error);
    const said = `${name}: ${message}`;
    if (name === "ResourceNotFoundException") {
      return new TableError(
        "error",
        `there is no table ${this.#name} in ${this.#region}; create it, or mend ` +
          "--dynamodb-table or --dynamodb-region",
        { isDefinite: true },
      );
    }
    if (name === "CredentialsProviderError") {
      return new TableError(
        "denied",
        `there are no AWS credentials: set up a role, a profile or keys for this process (${message})`,
        { isDefinite: true, isIdentity: true },
      );
    }
    if (THROTTLED.has(name)) {
      return new TableError("throttled", `DynamoDB throttles ${operation} on ${this.#where()}`);
    }
    if (name === "AccessDeniedException") {
      return new TableError(
        "denied",
        `AWS denies ${operation} on ${this.#where()}; allow it in the IAM policy (${message})`,
        { isDefinite: operation === "dynamodb:Query" },
      );
    }
    if (BAD_IDENTITY.has(name)) {
      return new TableError("denied", `AWS refuses the credentials of this process (${said})`, {
        isDefinite: true,
        isIdentity: true,
      });
    }
    if (name === "AbortError" || name === "TimeoutError") {
      return new TableError("timeout", `DynamoDB did not answer ${operation} in time`);
    }
    if (name === "ValidationException" && operation === "dynamodb:Query") {
      return new TableError(
        "error",
        `${this.#where()} can't be read by pk (S, HASH), sk (S, RANGE), the key that it needs; ` +
          `create another one (${message})`,
        { isDefinite: true },
      );
    }
    // What is thrown where JSON can't be parsed, or holds something else than it should.
    if (code === "" && (name === "SyntaxError" || name === "TypeError")) {
      return new TableError(
        "error",
        `the answer to ${operation} is not in the form of DynamoDB's; look at the endpoint in ` +
          `${this.#region}, and at what is between`,
      );
    }
    if (status !== undefined && status >= 500) {
      return new TableError("error", `DynamoDB failed at ${operation} with status ${status}`);
    }
    if (status === undefined) {
      return new TableError("error", `cannot reach DynamoDB in ${this.#region} (${said})`);
    }
    return new TableError("error", `${operation} on ${this.#where()} failed (${said})`);
  }
}

/**
 * Takes the answer to a Query as it was sent, once it was. The SDK would copy each attribute of each
 * item, for more than the parsing itself costs.
 */
function takeAnswer(command: QueryCommand): { readonly text: string } {
  const answer = { text: "{}" };
  command.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { response } = result;
      if (isOk(response)) {
        answer.text = await new Response(response.body).text();
        Object.assign(response, { body: NO_OUTPUT });
      }
      return result;
    },
    { step: "deserialize", priority: "low" },
  );
  return answer;
}

/** What is left for the SDK to read. */
const NO_OUTPUT = new TextEncoder().encode("{}");

/** Whether a response of the SDK's HTTP handler, whose type it hides, is a success. */
function isOk(response: unknown): response is { readonly body: ReadableStream } {
  return (
    typeof response === "object" &&
    response !== null &&
    "statusCode" in response &&
    response.statusCode === 200
  );
}

const THROTTLED = new Set([
  "ThrottlingException",
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "LimitExceededException",
]);

const BAD_IDENTITY = new Set([
  "UnrecognizedClientException",
  "InvalidClientTokenId",
  "InvalidSignatureException",
  "IncompleteSignatureException",
  "MissingAuthenticationTokenException",
  "MissingAuthenticationToken",
  "ExpiredTokenException",
  "ExpiredToken",
]);

function detailsOf(error: unknown): {
  readonly name: string;
  readonly message: string;
  /** Empty for none. */
  readonly code: string;
  readonly status: number | undefined;
} {
  if (!(error instanceof Error)) {
    return { name: "error", message: String(error), code: "", status: undefined };
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const metadata = "$metadata" in error ? error.$metadata : undefined;
  const status =
    typeof metadata === "object" && metadata !== null && "httpStatusCode" in metadata
      ? Number(metadata.httpStatusCode)
      : undefined;
  const message = code === "" ? error.message : `${code} ${error.message}`;
  return { name: error.name, message, code, status };
}
