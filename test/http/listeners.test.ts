import { afterEach, describe, expect, test } from "bun:test";
import { type Listener, Listeners } from "../../src/http/listeners.ts";
import { listeningSockets } from "../../src/http/listening-sockets.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";
import type { Order } from "../support/held-connections.ts";
import { thrownBy } from "../support/thrown-by.ts";

/** A real listener whose answer is its name. */
class Named implements Listener {
  readonly server: Bun.Server<undefined>;
  isRetired = false;
  isStopped = false;

  constructor(name: string, port: number) {
    this.server = Bun.serve({
      hostname: "127.0.0.1",
      port,
      reusePort: port !== 0,
      development: false,
      fetch: () => new Response(name),
    });
    started.add(this);
  }

  retire(): void {
    this.isRetired = true;
  }

  stop(isForced?: boolean): Promise<void> {
    this.isStopped = true;
    return this.server.stop(isForced);
  }
}

const started = new Set<Named>();
afterEach(async () => {
  for (const each of started) await each.server.stop(true);
  started.clear();
});

const openSockets = async () => listeningSockets();

function listenersOf(open: typeof openSockets = openSockets) {
  const clock = new FakeClock();
  const first = new Named("a", 0);
  const port = first.server.port ?? 0;
  const listeners = new Listeners(first, { clock, openSockets: open });
  const replaceWith = async (name: string) => {
    let made: Named | undefined;
    await listeners.replace(() => {
      made = new Named(name, port);
      return made;
    });
    if (made === undefined) throw new Error("nothing was opened");
    return made;
  };
  return { clock, first, port, listeners, replaceWith };
}

/** Who answers so many new connections. */
async function whoAnswers(port: number, count = 200): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (let n = 0; n < count; n += 1) {
    const response = await fetch(`http://127.0.0.1:${port}`, { headers: { Connection: "close" } });
    const name = await response.text();
    answers[name] = (answers[name] ?? 0) + 1;
  }
  return answers;
}

describe.skipIf(process.platform !== "linux")("a listener that is replaced", () => {
  test("gets no new connections", async () => {
    const { port, replaceWith } = listenersOf();
    expect(await whoAnswers(port)).toEqual({ a: 200 });
    await replaceWith("b");
    expect(await whoAnswers(port)).toEqual({ b: 200 });
  });

  test("closes after 90 s, when all that it had has ended by itself", async () => {
    const { clock, first, port, replaceWith } = listenersOf();
    await replaceWith("b");
    expect(first.isRetired).toBe(true);
    clock.advance(89_999);
    expect(first.isStopped).toBe(false);
    clock.advance(1);
    expect(first.isStopped).toBe(true);
    expect(await whoAnswers(port)).toEqual({ b: 200 });
  });

  test("gets none either when several are replaced one after the other, and close", async () => {
    const { clock, port, replaceWith } = listenersOf();
    for (const name of ["b", "c", "d"]) {
      await replaceWith(name);
      expect(await whoAnswers(port)).toEqual({ [name]: 200 });
      clock.advance(40_000);
      expect(await whoAnswers(port)).toEqual({ [name]: 200 });
    }
    for (let step = 0; step < 3; step += 1) {
      clock.advance(40_000);
      expect(await whoAnswers(port)).toEqual({ d: 200 });
    }
    expect([...started].map(({ isStopped }) => isStopped)).toEqual([true, true, true, false]);
  });

  test("answers the connections that the system has made and it has not accepted yet", async () => {
    const { port, replaceWith } = listenersOf();
    const connected = new SharedArrayBuffer(4);
    const client = new Worker(new URL("../support/held-connections.ts", import.meta.url));
    const order: Order = { port, count: 100, connected };
    client.postMessage(order);
    // This thread accepts nothing from here on until the new listener is there.
    Atomics.wait(new Int32Array(connected), 0, 0, 10_000);
    await replaceWith("b");
    const answers = new Promise<string[]>((done) => {
      client.onmessage = ({ data }: MessageEvent<string[]>) => done(data);
    });
    client.postMessage("ask");
    expect(await answers).toEqual(Array.from({ length: 100 }, () => "a"));
    client.terminate();
  });

  test("stops with the others", async () => {
    const { clock, first, listeners, port, replaceWith } = listenersOf();
    const second = await replaceWith("b");
    await listeners.stop();
    expect([first.isStopped, second.isStopped]).toEqual([true, true]);
    expect(clock.timers).toBe(0);
    expect(await thrownBy(() => fetch(`http://127.0.0.1:${port}`))).toBeInstanceOf(Error);
  });
});

test("where the new listener can't be opened, the one before goes on", async () => {
  const { first, listeners, port } = listenersOf();
  const fails = () => {
    throw new Error("no");
  };
  await thrownBy(() => listeners.replace(fails));
  expect([first.isRetired, first.isStopped]).toEqual([false, false]);
  expect(await whoAnswers(port)).toEqual({ a: 200 });
});

test("where no two listeners can share an address, the one before goes on", async () => {
  for (const sockets of [undefined, { share: () => false, direct: () => false }]) {
    const { first, port, replaceWith } = listenersOf(async () => sockets);
    const error = await thrownBy(() => replaceWith("b"));
    expect(error).toBeInstanceOf(ServiceError);
    expect(error.message).toContain("restart");
    expect([first.isRetired, first.isStopped]).toEqual([false, false]);
    expect(await whoAnswers(port)).toEqual({ a: 200 });
  }
});

test("where the system can't choose between two listeners, the one before closes at once", async () => {
  const { first, port, replaceWith } = listenersOf(async () => {
    const sockets = listeningSockets();
    return sockets && { share: sockets.share, direct: () => false };
  });
  await replaceWith("b");
  expect(first.isStopped).toBe(true);
  expect(await whoAnswers(port)).toEqual({ b: 200 });
});

test("nothing is opened once all has stopped", async () => {
  const { listeners } = listenersOf();
  const replacing = listeners.replace(() => {
    throw new Error("opened");
  });
  await listeners.stop();
  await replacing;
});
