import { type PoolList, poolList, post } from "./relay.ts";
import type { Service } from "./service.ts";
import { until } from "./until.ts";

/** What a `GET /pools` was answered. Times are those of the wall clock. */
export interface Sample {
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  readonly status: number;
  readonly body: string;
  readonly etag: string;
  /** The list, where that is what came. */
  readonly list: PoolList | undefined;
}

export async function sample(url: string): Promise<Sample> {
  const sentAtMs = Date.now();
  const response = await fetch(`${url}/pools`, { headers: { "Accept-Encoding": "identity" } });
  const body = await response.text();
  return {
    sentAtMs,
    answeredAtMs: Date.now(),
    status: response.status,
    body,
    etag: response.headers.get("etag") ?? "",
    list: response.status === 200 ? poolList(body) : undefined,
  };
}

/** Reads `GET /pools` again and again, and keeps all that it was answered. */
export class Watch implements AsyncDisposable {
  readonly samples: Sample[] = [];
  #isOver = false;
  readonly #finished: Promise<void>;

  constructor(url: string, everyMs = 60) {
    this.#finished = this.#run(url, everyMs);
    // Whoever waits for something hears of it; a test that has failed does not.
    this.#finished.catch(() => {});
  }

  async #run(url: string, everyMs: number): Promise<void> {
    while (!this.#isOver) {
      this.samples.push(await sample(url));
      await Bun.sleep(everyMs);
    }
  }

  /** Waits for an answer from now on that is as `test` wants it. */
  async for(what: string, test: (sample: Sample) => boolean, deadlineMs?: number): Promise<Sample> {
    let next = this.samples.length;
    const look = () => {
      for (; next < this.samples.length; next += 1) {
        const sample = this.samples[next];
        if (sample !== undefined && test(sample)) return sample;
      }
      return undefined;
    };
    return await Promise.race([
      until(what, look, deadlineMs).catch((error) => {
        throw new Error(`${error.message}; the last answer was ${this.samples.at(-1)?.body}`);
      }),
      // A service that is gone answers no more.
      this.#finished.then(() => Promise.reject(new Error(`the watch ended before ${what}`))),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    // What it failed of, if it did, `for` has said.
    await this.#finished.catch(() => {});
  }
}

/** How a `POST /pools` was answered. */
export interface PostAnswer {
  readonly status: number;
  readonly text: string;
  readonly sentAtMs: number;
  readonly tookMs: number;
}

export async function timedPost(url: string, body: unknown): Promise<PostAnswer> {
  const sentAtMs = Date.now();
  const beganAtMs = performance.now();
  const response = await post(url, body);
  const text = await response.text();
  return { status: response.status, text, sentAtMs, tookMs: performance.now() - beganAtMs };
}

/** Registers a pool, however often it takes on a machine that is busy. */
export async function registerSoon(url: string, body: unknown): Promise<void> {
  let last = "";
  await until("a registration to be kept", async () => {
    const { status, text } = await timedPost(url, body);
    last = `${status} ${text}`;
    return status === 200 ? true : undefined;
  }).catch((error) => {
    throw new Error(`${error.message}; the last answer was ${last}`);
  });
}

/** Pool Relays that register their pools again and again until they are disposed of. */
export class Relays implements AsyncDisposable {
  readonly answers: PostAnswer[] = [];
  #isOver = false;
  readonly #finished: Promise<unknown>;

  constructor(url: string, bodies: readonly unknown[], everyMs = 500) {
    this.#finished = Promise.all(bodies.map((body) => this.#run(url, body, everyMs)));
    this.#finished.catch(() => {});
  }

  async #run(url: string, body: unknown, everyMs: number): Promise<void> {
    while (!this.#isOver) {
      this.answers.push(await timedPost(url, body));
      await Bun.sleep(everyMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#finished.catch(() => {});
  }
}

/** The names of the pools in a list, in its order. */
export function names(list: PoolList | undefined): string[] | undefined {
  return list?.pools.map(({ key }) => key.dgd_name);
}

/** Whether a list holds a pool by this name. */
export function lists(list: PoolList | undefined, name: string): boolean {
  return list?.pools.some(({ key }) => key.dgd_name === name) ?? false;
}

/**
 * How often the service found that it could not run for a while, which makes every lease longer and
 * lists incomplete. It happens on a machine that is busy.
 */
export function pausesOf(service: Service): number {
  return service.lines.filter((line) => line.includes("not running")).length;
}
