import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands between a replica and the API server, and passes bytes on, or does not. */
export class TcpGate implements Disposable {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #port = 0;
  #isHanging = false;
  #isClosed = false;

  private constructor(targetPort: number) {
    this.#server = createServer((client) => this.#accept(client, targetPort));
  }

  static async start(targetPort: number): Promise<TcpGate> {
    const gate = new TcpGate(targetPort);
    await new Promise<void>((done) => gate.#server.listen(0, "127.0.0.1", done));
    const address = gate.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port was taken");
    gate.#port = address.port;
    return gate;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** Breaks every connection. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Takes connections and says nothing on them, for so long; then breaks them. */
  async hang(ms: number): Promise<void> {
    this.#isHanging = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
    await Bun.sleep(ms);
    this.#isHanging = false;
    this.cut();
  }

  /** Breaks every connection for so long, new ones too. */
  async refuse(ms: number): Promise<void> {
    this.#isClosed = true;
    this.cut();
    await Bun.sleep(ms);
    this.#isClosed = false;
  }

  [Symbol.dispose](): void {
    this.#server.close();
    this.cut();
  }

  #accept(client: Socket, targetPort: number): void {
    client.on("error", () => {});
    if (this.#isClosed) {
      client.destroy();
      return;
    }
    const server = connect({ host: "127.0.0.1", port: targetPort });
    server.on("error", () => {});
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.pipe(to);
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
      if (this.#isHanging) from.pause();
    }
  }
}
