import type { Item, Table } from "./dynamodb.ts";
import { registration } from "./relay.ts";

/** A registration of a pool by this name, all of the same cluster and namespace. */
export function poolNamed(name: string, overrides: Readonly<Record<string, unknown>> = {}) {
  return registration({ key: keyNamed(name), ...overrides });
}

export function keyNamed(name: string) {
  return { cluster_id: "aws-west", namespace: "dynamo", dgd_name: name };
}

/** The sort key of such a pool. */
export function skNamed(name: string): string {
  return `aws-west/dynamo/${name}`;
}

/** The item that a replica writes for such a pool, as another replica might have done just now. */
export function itemNamed(
  name: string,
  {
    leaseSecs = 3,
    renewedAtMs = Date.now(),
    writtenIn = "us-east-1",
    body = poolNamed(name),
  }: {
    readonly leaseSecs?: number;
    readonly renewedAtMs?: number;
    readonly writtenIn?: string;
    readonly body?: unknown;
  } = {},
): Item {
  return {
    pk: { S: "pool" },
    sk: { S: skNamed(name) },
    registration: { S: JSON.stringify(body) },
    renewed_at: { N: String(renewedAtMs) },
    lease_s: { N: String(leaseSecs) },
    written_in: { S: writtenIn },
    expires_at: { N: String(Math.floor(renewedAtMs / 1000) + 604_800) },
  };
}

/** Writes a pool's item again and again, as another replica would with each heartbeat. */
export class OtherReplica implements AsyncDisposable {
  readonly renewals: { readonly renewedAtMs: number; readonly writtenAtMs: number }[] = [];
  readonly #finished: Promise<void>;
  #isOver = false;

  constructor(table: Table, itemAt: (renewedAtMs: number) => Item) {
    this.#finished = (async () => {
      while (!this.#isOver) {
        const renewedAtMs = Date.now();
        await table.put(itemAt(renewedAtMs));
        this.renewals.push({ renewedAtMs, writtenAtMs: Date.now() });
        await Bun.sleep(300);
      }
    })();
    // A table that is gone fails the test elsewhere.
    this.#finished.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#finished.catch(() => {});
  }
}
