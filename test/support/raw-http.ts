import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { within } from "./until.ts";

export interface RawResponse {
  readonly status: number;
  readonly headers: Headers;
  /** As sent: no coding is undone. */
  readonly body: Buffer;
}

/** A TCP connection on which a test writes whatever it likes. */
export class RawConnection implements Disposable {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #wake = Promise.withResolvers<void>();
  #isClosed = false;
  /** When the other side closed the connection, on `performance.now()`. */
  readonly closed: Promise<number>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#stir();
    });
    // A reset is one of the ways in which the other side closes.
    socket.on("error", () => {});
    this.closed = new Promise((done) => {
      socket.on("close", () => {
        this.#isClosed = true;
        done(performance.now());
        this.#stir();
      });
    });
  }

  /**
   * Opens a connection, with TLS where `tls` says how.
   *
   * @throws Error with the `code` that the system gave, `ECONNREFUSED` for one
   */
  static async open(url: string, tls?: ConnectionOptions): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const address = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
    const socket = tls === undefined ? connect(address) : connectTls({ ...address, ...tls });
    socket.setNoDelay(true);
    await new Promise<void>((done, fail) => {
      socket.once(tls === undefined ? "connect" : "secureConnect", done);
      socket.once("error", fail);
    });
    return new RawConnection(socket);
  }

  send(data: string | Uint8Array): void {
    this.#socket.write(data);
  }

  /** Sends, and waits until the system has taken it, so that a test holds no more than that. */
  async sendAll(data: Uint8Array): Promise<void> {
    if (this.#socket.write(data)) return;
    const { promise: drained, resolve } = Promise.withResolvers<void>();
    this.#socket.once("drain", resolve);
    await Promise.race([drained, this.closed]);
  }

  /** Stops reading, as a client that hangs does. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** What came that no `response` has taken. */
  get rest(): string {
    return this.#received.toString("latin1");
  }

  /** The next response; `bodiless` where it answers a `HEAD`. */
  async response({ bodiless = false, deadlineMs = 20_000 } = {}): Promise<RawResponse> {
    return await within(deadlineMs, "a response", this.#response(bodiless), () => this.rest);
  }

  async #response(bodiless: boolean): Promise<RawResponse> {
    for (;;) {
      const parsed = parse(this.#received, bodiless, this.#isClosed);
      if (parsed !== undefined) {
        this.#received = this.#received.subarray(parsed.bytes);
        return parsed.response;
      }
      if (this.#isClosed) {
        throw new Error(`the connection was closed after ${JSON.stringify(this.rest)}`);
      }
      await this.#wake.promise;
    }
  }

  #stir(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Sends bytes on a connection of their own and returns the first response. */
export async function exchange(
  url: string,
  data: string | Uint8Array,
  options?: { readonly bodiless?: boolean },
): Promise<RawResponse> {
  using connection = await RawConnection.open(url);
  connection.send(data);
  return await connection.response(options);
}

interface Parsed {
  readonly response: RawResponse;
  readonly bytes: number;
}

/** The response at the start of what came, once it is all there. */
function parse(received: Buffer, bodiless: boolean, isClosed: boolean): Parsed | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...fields] = received.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  if (!(status >= 100)) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
  const headers = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(":");
    headers.append(field.slice(0, colon), field.slice(colon + 1).trim());
  }
  const start = headEnd + 4;
  const length = headers.get("content-length");
  let end = start;
  if (!bodiless && status >= 200 && status !== 204 && status !== 304) {
    if (length === null && !isClosed) return undefined;
    end = length === null ? received.length : start + Number(length);
  }
  if (received.length < end) return undefined;
  return { response: { status, headers, body: received.subarray(start, end) }, bytes: end };
}
