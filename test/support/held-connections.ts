import { connect, type Socket } from "node:net";

/**
 * Runs in a worker: makes connections while the thread that listens is held up, so that the system
 * makes them and nobody accepts them; then, told to, asks on each of them.
 */
declare const self: Worker;

export interface Order {
  readonly port: number;
  readonly count: number;
  /** Becomes 1, with a notification, when all connections are there. */
  readonly connected: SharedArrayBuffer;
}

const sockets: Socket[] = [];

self.onmessage = async ({ data }: MessageEvent<Order | "ask">) => {
  if (data === "ask") {
    self.postMessage(await Promise.all(sockets.map(answerOn)));
    return;
  }
  const { port, count, connected } = data;
  await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.on("error", () => {});
      sockets.push(socket);
      await new Promise((done) => socket.once("connect", done));
    }),
  );
  const flag = new Int32Array(connected);
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
};

/** The last character of the answer, or that there was none. */
function answerOn(socket: Socket): Promise<string> {
  return new Promise((done) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
      if (/\r\n\r\n./.test(text)) done(text.slice(-1));
    });
    socket.on("close", () => done("lost"));
    if (socket.destroyed) done("lost");
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  });
}
