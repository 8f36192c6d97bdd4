import { connect, createServer, type Server, type Socket } from "node:net";

/** An HTTP proxy that keeps what it was asked for, and connects to wherever that was. */
export class RecordingProxy implements Disposable {
  /** `host:port` of each CONNECT, and the URL of each other request. */
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  private constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async start(): Promise<RecordingProxy> {
    const proxy = new RecordingProxy();
    await new Promise<void>((done) => proxy.#server.listen(0, "127.0.0.1", done));
    const address = proxy.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port was taken");
    proxy.#port = address.port;
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    this.#keep(socket);
    socket.once("data", (head) => {
      const [method = "", target = ""] = head.toString("latin1").split(" ");
      this.asked.push(target);
      if (method !== "CONNECT") {
        socket.end("HTTP/1.1 502 Only CONNECT\r\nContent-Length: 0\r\n\r\n");
        return;
      }
      const { hostname, port } = new URL(`http://${target}`);
      const upstream = connect(Number(port), hostname, () => {
        socket.write("HTTP/1.1 200 Connected\r\n\r\n");
        socket.pipe(upstream).pipe(socket);
      });
      this.#keep(upstream);
      upstream.once("error", () => socket.destroy());
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
