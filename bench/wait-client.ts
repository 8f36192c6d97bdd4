/**
 * Clients that all wait for one list, in a process of their own: what they do must not pass for the
 * server's doing. For each registration that it is sent by the bench, it posts that, and tells how
 * long it took until the clients had the changed list; they wait again from then on.
 *
 * Arguments: the server's URL, and how many clients.
 */
const [url = "", clients] = process.argv.slice(2);
const { hostname, port } = new URL(url);

/** How long each of the clients had to wait for a change. */
export interface WakeUp {
  readonly medianMs: number;
  readonly p99Ms: number;
}

interface Client {
  readonly socket: Bun.Socket<undefined>;
  /** Of an answer that is on its way, what is still missing; undefined for one that has not begun. */
  missingBytes: number | undefined;
  etag: string;
}

/** How many clients connect at a time. */
const CONNECTING = 50;

let postedAtMs = 0;
let waitsMs: number[] = [];
let allTold = Promise.withResolvers<void>();
const all: Client[] = [];
const clientOf = new Map<Bun.Socket<undefined>, Client>();

function ask({ socket, etag }: Client): void {
  const head = ["GET /pools HTTP/1.1", "Host: bench", "Accept-Encoding: zstd", "Prefer: wait=60"];
  socket.write(`${[...head, `If-None-Match: ${etag}`].join("\r\n")}\r\n\r\n`);
}

function receive(client: Client, data: Buffer): void {
  let bodyBytes = data.length;
  if (client.missingBytes === undefined) {
    const end = data.indexOf("\r\n\r\n");
    const head = data.toString("latin1", 0, end);
    // Nothing has changed for as long as a client may wait.
    if (head.startsWith("HTTP/1.1 304 ")) {
      ask(client);
      return;
    }
    if (!head.startsWith("HTTP/1.1 200 ")) throw new Error(`not a list: ${head}`);
    client.missingBytes = Number(/^Content-Length: (\d+)$/im.exec(head)?.[1]);
    client.etag = /^ETag: (.*)$/im.exec(head)?.[1] ?? "";
    bodyBytes -= end + 4;
  }
  client.missingBytes -= bodyBytes;
  if (client.missingBytes > 0) return;
  client.missingBytes = undefined;
  waitsMs.push(performance.now() - postedAtMs);
  if (waitsMs.length === all.length) allTold.resolve();
}

async function connect(etag: string): Promise<void> {
  const { promise: isOpen, resolve } = Promise.withResolvers<void>();
  await Bun.connect<undefined>({
    hostname,
    port: Number(port),
    socket: {
      open(socket) {
        const client: Client = { socket, missingBytes: undefined, etag };
        all.push(client);
        clientOf.set(socket, client);
        ask(client);
        resolve();
      },
      data(socket, data) {
        const client = clientOf.get(socket);
        if (client !== undefined) receive(client, data);
      },
      close() {
        throw new Error("a connection was closed");
      },
    },
  });
  await isOpen;
}

async function wakeUp(body: string): Promise<WakeUp> {
  waitsMs = [];
  allTold = Promise.withResolvers();
  const headers = { "Content-Type": "application/json" };
  postedAtMs = performance.now();
  const answer = await fetch(`${url}/pools`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
  await allTold.promise;
  const sorted = waitsMs.toSorted((a, b) => a - b);
  for (const client of all) ask(client);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
  return { medianMs: at(0.5), p99Ms: at(0.99) };
}

const list = await fetch(`${url}/pools`);
await list.bytes();
const etag = list.headers.get("ETag") ?? "";
for (let open = 0; open < Number(clients); open += CONNECTING) {
  await Promise.all(Array.from({ length: CONNECTING }, () => connect(etag)));
}
process.on("message", async (body: string) => process.send?.(await wakeUp(body)));
process.send?.("all wait");
