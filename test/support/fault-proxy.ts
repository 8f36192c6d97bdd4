import { createServer, type Server, type Socket } from "node:net";

/** What the service asks of DynamoDB. */
export type Operation = "Query" | "UpdateItem" | "DescribeTable" | "DescribeTimeToLive";

/** A request as the proxy saw it. */
export interface ProxiedRequest {
  readonly operation: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
  /** The same for all attempts of one call of the SDK. */
  readonly call: string;
  /** On the wall clock, as all times here. */
  readonly startedAtMs: number;
  /** When it was answered or its connection closed; undefined while neither has happened. */
  readonly endedAtMs: number | undefined;
  /** How many requests of this operation were under way with it when it came, itself included. */
  readonly atOnce: number;
}

interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

/** A request that is under way, for a {@link Fault} to deal with. */
export interface Exchange {
  readonly body: Readonly<Record<string, unknown>>;
  /** Resolves when the client has closed the connection. */
  readonly closed: Promise<void>;
  readonly isClosed: () => boolean;
  /** Has the request carried out, and takes the answer. */
  forward(): Promise<Answer>;
  /** Sends an answer to the client. */
  answer(answer: Answer): void;
  /** Sends bytes of an answer as they stand. */
  send(bytes: string | Uint8Array): void;
  /** Closes the connection. */
  drop(): void;
}

/** What becomes of a request instead of being passed on, and its answer back. */
export type Fault = (exchange: Exchange) => Promise<void> | void;

const passOn: Fault = async (exchange) => exchange.answer(await exchange.forward());

/** Never answers. */
export const hang: Fault = ({ closed }) => closed;

/** Has the request carried out, and never answers. */
export const commitThenHang: Fault = async ({ forward, closed }) => {
  await forward();
  await closed;
};

/** Closes the connection without a word. */
export const drop: Fault = ({ drop }) => drop();

/** Sends the true answer, a byte now and then, but never the last: it is neither silent nor over. */
export const dribble: Fault = async (exchange) => {
  const answer = await exchange.forward();
  exchange.send(headOf(answer));
  for (const byte of answer.body.subarray(0, -1)) {
    if (exchange.isClosed()) return;
    exchange.send(Uint8Array.of(byte));
    await Bun.sleep(200);
  }
  await exchange.closed;
};

/** Passes everything on, `ms` later. */
export function delayed(ms: number): Fault {
  return async (exchange) => {
    await Bun.sleep(ms);
    await passOn(exchange);
  };
}

/** Answers with an error in the form that DynamoDB gives it. */
export function refuse(status: number, type: string, message = "as the test wants it"): Fault {
  const answer = jsonAnswer(status, {
    __type: `com.amazonaws.dynamodb.v20120810#${type}`,
    message,
  });
  return (exchange) => exchange.answer(answer);
}

/** Answers as a load balancer before DynamoDB does, in no form of DynamoDB's own. */
export function fail(status: number): Fault {
  const headers = [["Content-Type", "text/html"]] as const;
  const answer = { status, headers, body: Buffer.from("<html>as the test wants it</html>") };
  return (exchange) => exchange.answer(answer);
}

/** Only from the second page of a Query on. */
export function onLaterPages(fault: Fault): Fault {
  return (exchange) =>
    exchange.body.ExclusiveStartKey === undefined ? passOn(exchange) : fault(exchange);
}

/** Has requests carried out as they come, and keeps the answers until they are let go. */
export class Hold {
  readonly #free = Promise.withResolvers<void>();
  #held = 0;

  readonly fault: Fault = async (exchange) => {
    const answer = await exchange.forward();
    this.#held += 1;
    await this.#free.promise;
    exchange.answer(answer);
  };

  /** How many answers it has taken. */
  get held(): number {
    return this.#held;
  }

  letGo(): void {
    this.#free.resolve();
  }
}

/**
 * Stands between the service and DynamoDB, does to each operation what a test asks for, and keeps
 * a record. It speaks HTTP on bare sockets, so that a connection breaks exactly where a test wants.
 */
export class FaultProxy implements Disposable {
  readonly requests: ProxiedRequest[] = [];
  /** How many items a page of a Query has at most; undefined for as many as the table gives. */
  pageSize: number | undefined;
  readonly #target: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #faults = new Map<string, Fault>();
  #port = 0;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** Starts a proxy on `port` of 127.0.0.1, a free one where that is 0, that passes on to `target`. */
  static async start(target: string, port = 0): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((done, failed) => {
      proxy.#server.once("error", failed);
      proxy.#server.listen(port, "127.0.0.1", done);
    });
    const address = proxy.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port was taken");
    proxy.#port = address.port;
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** From now on, `fault` becomes of requests of `operations`. */
  break(fault: Fault, ...operations: readonly Operation[]): void {
    for (const operation of operations) this.#faults.set(operation, fault);
  }

  /** Passes everything on again. What hangs already goes on hanging. */
  mend(): void {
    this.#faults.clear();
  }

  /** The requests of an operation so far. */
  of(operation: Operation): ProxiedRequest[] {
    return this.requests.filter((request) => request.operation === operation);
  }

  /** The first request of each call that the SDK made, however often it tried. */
  callsOf(operation: Operation): ProxiedRequest[] {
    const seen = new Set<string>();
    return this.of(operation).filter(({ call }) => !seen.has(call) && seen.add(call));
  }

  /** The first request of each read of the table, of however many pages it is. */
  reads(): ProxiedRequest[] {
    return this.callsOf("Query").filter(({ body }) => body.ExclusiveStartKey === undefined);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    const closed = new Promise<void>((done) => socket.once("close", done));
    let received: Buffer = Buffer.alloc(0);
    let isBusy = false;
    const next = async () => {
      if (isBusy) return;
      const message = takeMessage(received);
      if (message === undefined) return;
      received = message.rest;
      isBusy = true;
      try {
        await this.#handle(socket, closed, message);
      } catch {
        // Nobody serves behind the proxy: to the client it is as if nobody served here.
        socket.destroy();
      }
      isBusy = false;
      void next();
    };
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, Buffer.from(chunk)]);
      void next();
    });
    // The client may go away at any time.
    socket.on("error", () => {});
    void closed.then(() => this.#sockets.delete(socket));
  }

  async #handle(socket: Socket, closed: Promise<void>, message: Message): Promise<void> {
    const operation = message.headers.get("x-amz-target")?.split(".")[1] ?? "";
    const body = jsonObject(message.body.toString());
    const underWay = this.requests.filter(
      (other) => other.operation === operation && other.endedAtMs === undefined,
    );
    const request: { -readonly [Name in keyof ProxiedRequest]: ProxiedRequest[Name] } = {
      operation,
      body,
      headers: message.headers,
      call: message.headers.get("amz-sdk-invocation-id") ?? "",
      startedAtMs: Date.now(),
      endedAtMs: undefined,
      atOnce: underWay.length + 1,
    };
    this.requests.push(request);
    const end = () => {
      request.endedAtMs ??= Date.now();
    };
    void closed.then(end);
    const sent = operation === "Query" && this.pageSize !== undefined;
    const forwarded = sent ? JSON.stringify({ ...body, Limit: this.pageSize }) : message.body;
    await (this.#faults.get(operation) ?? passOn)({
      body,
      closed,
      isClosed: () => socket.destroyed,
      forward: () => this.#forward(message, forwarded),
      answer(answer) {
        // Before it is sent, since the client may send its next request at once.
        end();
        socket.write(Buffer.concat([Buffer.from(headOf(answer)), answer.body]));
      },
      send: (bytes) => socket.write(bytes),
      drop: () => socket.destroy(),
    });
  }

  async #forward({ method, path, headers }: Message, body: string | Buffer): Promise<Answer> {
    const passed = new Headers(headers);
    for (const name of ["connection", "content-length", "host", "expect"]) passed.delete(name);
    const response = await fetch(this.#target + path, { method, headers: passed, body });
    return {
      status: response.status,
      headers: [...response.headers].filter(([name]) => !HOP_BY_HOP.has(name)),
      body: await response.bytes(),
    };
  }
}

/** What belongs to a connection, not to the answer. */
const HOP_BY_HOP = new Set(["connection", "content-length", "keep-alive", "transfer-encoding"]);

interface Message {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: Buffer;
  /** What came after it. */
  readonly rest: Buffer;
}

/** The request at the start of what came, once it is all there. */
function takeMessage(received: Buffer): Message | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [requestLine = "", ...fields] = received.toString("latin1", 0, headEnd).split("\r\n");
  const [method = "", path = ""] = requestLine.split(" ");
  const headers = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(":");
    headers.append(field.slice(0, colon), field.slice(colon + 1).trim());
  }
  const start = headEnd + 4;
  const end = start + Number(headers.get("content-length") ?? 0);
  if (received.length < end) return undefined;
  return {
    method,
    path,
    headers,
    body: received.subarray(start, end),
    rest: received.subarray(end),
  };
}

function headOf({ status, headers, body }: Answer): string {
  const fields = [...headers, ["Content-Length", String(body.length)] as const];
  return `HTTP/1.1 ${status} As Said\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

function jsonAnswer(status: number, value: unknown): Answer {
  const headers = [["Content-Type", "application/x-amz-json-1.0"]] as const;
  return { status, headers, body: Buffer.from(JSON.stringify(value)) };
}

function jsonObject(text: string): Record<string, unknown> {
  const value: unknown = text === "" ? {} : JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error(`not an object: ${text}`);
  return { ...value };
}
