import { RawConnection } from "./raw-http.ts";
import { postBytes, registration } from "./relay.ts";

const GET = "GET /pools HTTP/1.1\r\nHost: x\r\n\r\n";

/**
 * Clients that ask over TLS without a pause: on connections that stay, busy ones and such as are
 * silent between two heartbeats, and on new ones for each request.
 */
export class TlsLoad implements AsyncDisposable {
  readonly #url: string;
  readonly #tls = { rejectUnauthorized: false };
  readonly #workers: Promise<void>[];
  #isOver = false;
  /** How many requests were answered with 200. */
  answered = 0;
  /** What happened to those that were not. */
  readonly lost: string[] = [];

  constructor(url: string) {
    this.#url = url;
    const heartbeat = postBytes(JSON.stringify(registration()));
    const workers = (count: number, work: () => Promise<void>) =>
      Array.from({ length: count }, work);
    this.#workers = [
      ...workers(3, () => this.#stay(GET, 0)),
      ...workers(3, () => this.#stay(heartbeat, 0)),
      ...workers(60, () => this.#stay(heartbeat, 1000)),
      ...workers(6, () => this.#comeAndGo()),
    ];
  }

  /** Asks on one connection until the service says that it closes it. */
  async #stay(request: string | Uint8Array, pauseMs: number): Promise<void> {
    while (!this.#isOver) {
      await this.#count(async () => {
        using connection = await RawConnection.open(this.#url, this.#tls);
        while (!this.#isOver && (await this.#ask(connection, request))) {
          if (pauseMs > 0) await Bun.sleep(pauseMs * Math.random());
        }
      });
    }
  }

  async #comeAndGo(): Promise<void> {
    while (!this.#isOver) {
      await this.#count(async () => {
        using connection = await RawConnection.open(this.#url, this.#tls);
        await this.#ask(connection, GET);
      });
    }
  }

  async #ask(connection: RawConnection, request: string | Uint8Array): Promise<boolean> {
    connection.send(request);
    const { status, headers } = await connection.response();
    if (status !== 200) throw new Error(`status ${status}`);
    this.answered += 1;
    return headers.get("connection") !== "close";
  }

  async #count(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.lost.push(String(error));
      await Bun.sleep(10);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#workers);
  }
}
