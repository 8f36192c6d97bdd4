import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import type { Certificates } from "./certificates.ts";
import { labelFilter } from "./label-selector.ts";
import { freePort } from "./service.ts";

/** An EndpointSlice as it is written to an API server. */
export interface SliceObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly addressType: string;
  readonly endpoints: readonly object[];
  readonly ports?: readonly object[];
}

interface StoredSlice extends SliceObject {
  readonly metadata: SliceObject["metadata"] & { readonly resourceVersion: string };
}

/** What changed; `before` and `after` are undefined where there was or is no slice. */
interface Change {
  readonly version: number;
  readonly before: StoredSlice | undefined;
  readonly after: StoredSlice | undefined;
}

/** A watch that is open. */
interface Watcher {
  readonly tell: (change: Change) => void;
  readonly end: () => void;
}

export type Verb = "list" | "watch";

export interface ApiRequest {
  /** Undefined for what is no list or watch of EndpointSlices. */
  readonly verb: Verb | undefined;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** The common name of the certificate that the client has shown. */
  readonly certificateName: string | undefined;
  /** On the wall clock. */
  readonly atMs: number;
}

/** A request that is under way, for an {@link ApiFault} to deal with. */
export interface ApiExchange {
  readonly request: ApiRequest;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;
  /** Goes on as if there were no fault. */
  serve(): void;
  /** The true body of a list. */
  page(): string;
  answer(status: number, body: string, headers?: Readonly<Record<string, string>>): void;
  /** Takes a watch on, which then has only what a fault sends. */
  openWatch(): void;
  /** Sends a line of a watch. */
  sendLine(text: string): void;
  /** Ends a watch in order. */
  endWatch(): void;
  /** Sends bytes as they stand. */
  send(bytes: string): void;
  /** Closes the connection, in order or by a reset. */
  close(how: "end" | "reset"): void;
}

/** What becomes of a request in place of its true answer. */
export type ApiFault = (exchange: ApiExchange) => void;

/** Never answers. */
export const hang: ApiFault = () => {};

/** Answers with a Status, as an API server does. */
export function refuse(
  code: number,
  reason: string,
  { message = "as the test wants it", headers = {} } = {},
): ApiFault {
  return ({ answer }) => answer(code, statusText(code, reason, message), headers);
}

/** Answers with anything. */
export function answerWith(status: number, body: string, headers = {}): ApiFault {
  return ({ answer }) => answer(status, body, headers);
}

/** Asks for fewer requests. */
export const throttle = refuse(429, "TooManyRequests", { headers: { "Retry-After": "1" } });

/** Sends half of a list, and closes the connection. */
export function halfPage(how: "end" | "reset"): ApiFault {
  return ({ page, send, close }) => {
    const body = page();
    send(
      `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, body.length / 2)}`,
    );
    setTimeout(() => close(how), 20);
  };
}

/** Closes the connection at once. */
export const reset: ApiFault = ({ close }) => close("reset");

/** Only from the second page of a list on. */
export function onLaterPages(fault: ApiFault): ApiFault {
  return (exchange) =>
    exchange.request.query.has("continue") ? fault(exchange) : exchange.serve();
}

/** Takes a watch on and never sends anything, whatever its time-out is. */
export const silent: ApiFault = ({ openWatch }) => openWatch();

/** Takes a watch on and ends it at once. */
export const endAtOnce: ApiFault = ({ openWatch, endWatch }) => {
  openWatch();
  endWatch();
};

/** Takes a watch on, sends one line in it, and ends it. */
export function sendsLine(line: string): ApiFault {
  return ({ openWatch, sendLine, endWatch }) => {
    openWatch();
    sendLine(line);
    endWatch();
  };
}

/** Takes a watch on, and sends an ERROR event. */
export function errorEvent(code: number, reason: string, message?: string): ApiFault {
  return sendsLine(`{"type":"ERROR","object":${statusText(code, reason, message ?? "")}}`);
}

function statusText(code: number, reason: string, message: string): string {
  return JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason,
    code,
  });
}

const RESOURCE = "/apis/discovery.k8s.io/v1/endpointslices";

export interface FakeApiServerOptions {
  /** Serves HTTPS with these, and knows clients by certificates of the same root; else plain HTTP. */
  readonly certificates?: Certificates;
  /** Whether the TLS handshake itself refuses who has no good certificate. */
  readonly isStrict?: boolean;
  readonly hostname?: string;
  readonly port?: number;
  /** Comes before `/apis`. */
  readonly path?: string;
}

/**
 * Speaks as kube-apiserver does, so far as EndpointSlices are listed and watched, does to each request
 * what a test asks for, and keeps a record. It speaks HTTP on bare sockets, so that a connection breaks
 * exactly where a test wants.
 */
export class FakeApiServer implements Disposable {
  readonly requests: ApiRequest[] = [];
  /** The bearer tokens and certificate names that are let in; null for everybody. */
  allowed: ReadonlySet<string> | null = null;
  /** Of those, who may do nothing. */
  forbidden: ReadonlySet<string> = new Set();
  /** How a watch from a version that is gone is refused. */
  expiredAs: "event" | "status" = "event";
  /** How far apart bookmarks are. */
  bookmarkMs = 60_000;
  /** Sends watch lines in pieces of so many bytes, one after the other. */
  pieceBytes = Number.POSITIVE_INFINITY;

  readonly #server: Server;
  readonly #options: FakeApiServerOptions;
  readonly #sockets = new Set<Socket>();
  readonly #faults = new Map<Verb, ApiFault>();
  readonly #watchers = new Set<Watcher>();
  readonly #lists = new Map<string, { readonly rest: StoredSlice[]; readonly version: string }>();
  readonly #slices = new Map<string, StoredSlice>();
  #history: Change[] = [];
  #version = 1000;
  #oldestVersion = 1000;
  #port = 0;

  private constructor(options: FakeApiServerOptions) {
    this.#options = options;
    const { certificates, isStrict = false } = options;
    const accept = (socket: Socket) => this.#accept(socket);
    this.#server =
      certificates === undefined
        ? createServer(accept)
        : createTlsServer(
            {
              cert: readFileSync(certificates.chain),
              key: readFileSync(certificates.key),
              ca: readFileSync(certificates.root),
              requestCert: true,
              rejectUnauthorized: isStrict,
            },
            accept,
          );
    // A client that breaks the handshake off is the client's own affair.
    this.#server.on("tlsClientError", () => {});
  }

  /** Starts one without slices, on a free port of 127.0.0.1 unless it is told otherwise. */
  static async start(options: FakeApiServerOptions = {}): Promise<FakeApiServer> {
    const fake = new FakeApiServer(options);
    // While it is stopped, another server at its port would be asked in its place.
    fake.#port = options.port ?? (await freePort());
    await fake.startAgain();
    return fake;
  }

  get url(): string {
    const { certificates, hostname = "127.0.0.1", path = "" } = this.#options;
    const scheme = certificates === undefined ? "http" : "https";
    return `${scheme}://${hostname.includes(":") ? `[${hostname}]` : hostname}:${this.#port}${path}`;
  }

  /** The version that a list would have now. */
  get resourceVersion(): string {
    return String(this.#version);
  }

  /** Writes a slice, whatever was there, and returns its version. */
  put(slice: SliceObject): string {
    const resourceVersion = String(this.#version + 1);
    const after = { ...slice, metadata: { ...slice.metadata, resourceVersion } };
    this.#change(keyOf(slice.metadata), after);
    return resourceVersion;
  }

  /** Takes a slice away. */
  delete(namespace: string, name: string): void {
    this.#change(keyOf({ namespace, name }), undefined);
  }

  /** Forgets what was before now, as a compaction of etcd does: lists can't go on, nor old versions be watched. */
  expire(): void {
    this.#history = [];
    this.#oldestVersion = this.#version;
    this.#lists.clear();
  }

  /** From now on, `fault` becomes of requests. */
  break(fault: ApiFault, ...verbs: readonly Verb[]): void {
    for (const verb of verbs) this.#faults.set(verb, fault);
  }

  /** Serves everything again. What hangs already goes on hanging. */
  mend(): void {
    this.#faults.clear();
  }

  /** Refuses connections, and closes those that there are, as a server does that has ended. */
  async stop(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.dropAll();
    await closed;
  }

  /** Serves the same slices, at the same address, as a server does that has been started again. */
  async startAgain(): Promise<void> {
    const { hostname = "127.0.0.1" } = this.#options;
    await new Promise<void>((done, failed) => {
      this.#server.once("error", failed);
      this.#server.listen(this.#port, hostname, done);
    });
  }

  /** Ends every watch in order, as at its time-out. */
  endWatches(): void {
    for (const { end } of this.#watchers) end();
  }

  /** Closes every connection. */
  dropAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The requests of a verb so far. */
  of(verb: Verb): ApiRequest[] {
    return this.requests.filter((request) => request.verb === verb);
  }

  /** How many watches are open. */
  get watching(): number {
    return this.#watchers.size;
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.dropAll();
  }

  #change(key: string, after: StoredSlice | undefined): void {
    const before = this.#slices.get(key);
    this.#version += 1;
    const change = { version: this.#version, before, after };
    if (after === undefined) this.#slices.delete(key);
    else this.#slices.set(key, after);
    this.#history.push(change);
    for (const { tell } of this.#watchers) tell(change);
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    const closed = new Promise<void>((done) => socket.once("close", done));
    void closed.then(() => this.#sockets.delete(socket));
    // The client may go away at any time.
    socket.on("error", () => {});
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      // No request has a body, and none comes before the last one was answered.
      const end = received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = received.slice(0, end);
      received = received.slice(end + 4);
      this.#handle(socket, closed, head);
    });
  }

  #handle(socket: Socket, closed: Promise<void>, head: string): void {
    const request = this.#requestOf(socket, head);
    this.requests.push(request);
    const send = (bytes: string) => void socket.write(bytes);
    const answer: ApiExchange["answer"] = (status, body, headers = {}) => {
      const fields = {
        "Content-Type": "application/json",
        ...headers,
        "Content-Length": Buffer.byteLength(body),
      };
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
      send(`HTTP/1.1 ${status} As Said\r\n${lines.join("")}\r\n${body}`);
    };
    const exchange: ApiExchange = {
      request,
      closed,
      answer,
      send,
      serve: () => this.#serve(exchange),
      page: () => this.#page(request)?.body ?? "",
      openWatch: () =>
        send(
          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
      sendLine: (text) => this.#sendPieces(socket, Buffer.from(`${text}\n`)),
      endWatch: () => this.#inTurn(socket, () => send("0\r\n\r\n")),
      close: (how) => (how === "end" ? socket.end() : socket.resetAndDestroy()),
    };
    const fault = request.verb && this.#faults.get(request.verb);
    if (fault === undefined) this.#serve(exchange);
    else fault(exchange);
  }

  readonly #turns = new WeakMap<Socket, Promise<void>>();

  /** After what was sent before in pieces. */
  #inTurn(socket: Socket, action: () => void | Promise<void>): void {
    const turn = this.#turns.get(socket);
    if (turn === undefined && this.pieceBytes === Number.POSITIVE_INFINITY) void action();
    else this.#turns.set(socket, (turn ?? Promise.resolve()).then(action));
  }

  #sendPieces(socket: Socket, bytes: Buffer): void {
    this.#inTurn(socket, async () => {
      for (let at = 0; at < bytes.length; at += this.pieceBytes) {
        const piece = bytes.subarray(at, at + this.pieceBytes);
        socket.write(`${piece.length.toString(16)}\r\n`);
        socket.write(piece);
        socket.write("\r\n");
        if (at + this.pieceBytes < bytes.length) await Bun.sleep(0);
      }
    });
  }

  #requestOf(socket: Socket, head: string): ApiRequest {
    const [requestLine = "", ...fields] = head.split("\r\n");
    const [method = "", target = ""] = requestLine.split(" ");
    const { pathname, searchParams: query } = new URL(target, "http://api");
    const headers = new Headers();
    for (const field of fields) {
      const colon = field.indexOf(":");
      headers.append(field.slice(0, colon), field.slice(colon + 1).trim());
    }
    const known = method === "GET" && pathname === `${this.#options.path ?? ""}${RESOURCE}`;
    return {
      verb: known ? (query.get("watch") === "1" ? "watch" : "list") : undefined,
      method,
      path: pathname,
      query,
      headers,
      certificateName:
        socket instanceof TLSSocket && socket.authorized
          ? String(socket.getPeerCertificate().subject.CN)
          : undefined,
      atMs: Date.now(),
    };
  }

  #serve(exchange: ApiExchange): void {
    const { request, answer } = exchange;
    const users = usersOf(request);
    if (this.allowed !== null && !users.some((user) => this.allowed?.has(user))) {
      answer(401, statusText(401, "Unauthorized", "Unauthorized"));
    } else if (users.some((user) => this.forbidden.has(user))) {
      const message =
        `endpointslices.discovery.k8s.io is forbidden: User "${users[0]}" cannot ${request.verb} ` +
        'resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope';
      answer(403, statusText(403, "Forbidden", message));
    } else if (request.verb === "list") {
      const page = this.#page(request);
      if (page !== undefined) answer(200, page.body);
      else {
        answer(410, statusText(410, "Expired", "The provided continue parameter is too old."));
      }
    } else if (request.verb === "watch") this.#watch(exchange);
    else answer(404, "404 page not found\n", { "Content-Type": "text/plain" });
  }

  /** A page of a list; undefined where its token has expired. */
  #page({ query }: ApiRequest): { readonly body: string } | undefined {
    const token = query.get("continue");
    const found =
      token === null
        ? { rest: this.#matching(query.get("labelSelector") ?? ""), version: this.resourceVersion }
        : this.#lists.get(token);
    if (found === undefined) return undefined;
    const limit = Number(query.get("limit") ?? 0) || found.rest.length;
    const rest = found.rest.slice(limit);
    const next = rest.length === 0 ? "" : `${found.version}-${rest.length}-${this.#lists.size}`;
    if (next !== "") this.#lists.set(next, { rest, version: found.version });
    const body = JSON.stringify({
      kind: "EndpointSliceList",
      apiVersion: "discovery.k8s.io/v1",
      metadata: { resourceVersion: found.version, ...(next === "" ? {} : { continue: next }) },
      items: found.rest.slice(0, limit),
    });
    return { body };
  }

  #matching(selector: string): StoredSlice[] {
    const matches = labelFilter(selector);
    return [...this.#slices]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, slice]) => slice)
      .filter(({ metadata }) => matches(metadata.labels ?? {}));
  }

  #watch({ request, closed, answer, openWatch, sendLine, endWatch }: ApiExchange): void {
    const { query } = request;
    const from = Number(query.get("resourceVersion"));
    if (from < this.#oldestVersion) {
      const gone = statusText(410, "Expired", `too old resource version: ${from}`);
      if (this.expiredAs === "status") answer(410, gone);
      else {
        openWatch();
        sendLine(`{"type":"ERROR","object":${gone}}`);
        endWatch();
      }
      return;
    }
    openWatch();
    const matches = labelFilter(query.get("labelSelector") ?? "");
    const isSeen = (slice: StoredSlice | undefined) =>
      slice !== undefined && matches(slice.metadata.labels ?? {});
    const tell = ({ version, before, after }: Change) => {
      // A slice that is no longer selected is gone to this watcher.
      const type = isSeen(after) ? (isSeen(before) ? "MODIFIED" : "ADDED") : "DELETED";
      if (!isSeen(before) && !isSeen(after)) return;
      const slice = type === "DELETED" ? before : after;
      const metadata = { ...slice?.metadata, resourceVersion: String(version) };
      sendLine(JSON.stringify({ type, object: { ...slice, metadata } }));
    };
    const bookmark = () => {
      if (query.get("allowWatchBookmarks") !== "true") return;
      const metadata = { resourceVersion: this.resourceVersion };
      sendLine(JSON.stringify({ type: "BOOKMARK", object: { metadata } }));
    };
    for (const change of this.#history) if (change.version > from) tell(change);
    const stop = () => {
      this.#watchers.delete(watcher);
      clearInterval(marking);
      clearTimeout(ending);
    };
    const end = () => {
      bookmark();
      stop();
      endWatch();
    };
    const watcher = { tell, end };
    this.#watchers.add(watcher);
    const marking = setInterval(bookmark, this.bookmarkMs);
    const ending = setTimeout(end, Number(query.get("timeoutSeconds") ?? 1800) * 1000);
    void closed.then(stop);
  }
}

/** By what token and certificate a request is known. */
function usersOf({ headers, certificateName }: ApiRequest): string[] {
  const token = headers.get("authorization")?.replace(/^Bearer /, "");
  return [token, certificateName].filter((user) => user !== undefined);
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}
