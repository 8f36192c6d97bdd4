import { createSocket } from "node:dgram";

/** An answer's flags: a response, from an authority, to a question that allowed recursion. */
const RESPONSE = 0x8580;
const NO_SUCH_NAME = 3;
const TYPE_A = 1;

let servers = 0;

/**
 * A DNS server (RFC 1035) on an address of this machine, at the port that resolvers take for granted.
 * It says of each name that it knows that this is 127.0.0.1.
 */
export class NameServer implements AsyncDisposable {
  /** The names that it was asked for, with repeats. */
  readonly asked: string[] = [];
  readonly address: string;
  readonly #socket = createSocket("udp4");
  readonly #known: ReadonlySet<string>;

  private constructor(address: string, known: readonly string[]) {
    this.address = address;
    this.#known = new Set(known);
    this.#socket.on("message", (query, { port, address }) => {
      this.#socket.send(this.#answer(query), port, address);
    });
  }

  /** Rejects where the port can't be had, which takes root. */
  static async start(...known: readonly string[]): Promise<NameServer> {
    // Of the 16 million loopback addresses, each has one that no other is likely to have.
    servers += 1;
    const numbers = [servers & 0xff, (process.pid >> 8) & 0xff, process.pid & 0xff];
    const server = new NameServer(`127.${numbers.join(".")}`, known);
    await new Promise<void>((done, fail) => {
      server.#socket.once("error", fail);
      server.#socket.bind(53, server.address, done);
    });
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((done) => this.#socket.close(() => done()));
  }

  #answer(query: Buffer): Buffer {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at]; length; length = query[at]) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const question = query.subarray(12, at + 5);
    const name = labels.join(".").toLowerCase();
    this.asked.push(name);
    const isKnown = this.#known.has(name);
    const hasAddress = isKnown && query.readUInt16BE(at + 1) === TYPE_A;
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(RESPONSE | (isKnown ? 0 : NO_SUCH_NAME), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(hasAddress ? 1 : 0, 6);
    // The name as in the question, type A, class IN, no time to live, four bytes.
    const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1];
    return Buffer.concat([head, question, Buffer.from(hasAddress ? record : [])]);
  }
}
