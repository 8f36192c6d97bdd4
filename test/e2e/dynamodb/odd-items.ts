import { expect, test } from "bun:test";
import { awsEnvironment, type Emulator, type Item, startReplica } from "../../support/dynamodb.ts";
import { FaultProxy } from "../../support/fault-proxy.ts";
import { itemNamed, keyNamed, poolNamed, skNamed } from "../../support/pool-items.ts";
import type { Service } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { lists, names, Relays, registerSoon, Watch } from "../../support/watch.ts";

type Attributes = Readonly<Record<string, Item[string] | undefined>>;

/** A whole item but for what is given; undefined takes an attribute away. */
function odd(name: string, attributes: Attributes): Item {
  const item: Item = itemNamed(name, { leaseSecs: 600 });
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === undefined) delete item[attribute];
    else item[attribute] = value;
  }
  return item;
}

const registrationOf = (text: string) => ({ registration: { S: text } });
const json = (name: string, overrides: Readonly<Record<string, unknown>>) =>
  registrationOf(JSON.stringify({ ...poolNamed(name), ...overrides }));

/** The warnings about the table's items, each by the sort key that it names. */
function complaints(service: Service): string[] {
  return service.lines
    .map((line) => fieldsOf(line))
    .filter(({ level, sk }) => level === "WARN" && sk !== undefined)
    .map(({ sk }) => String(sk));
}

function fieldsOf(line: string): Readonly<Record<string, unknown>> {
  const fields: unknown = JSON.parse(line);
  return typeof fields === "object" && fields !== null ? { ...fields } : {};
}

const env = { ...awsEnvironment, DYN_LOGGING_JSONL: "1" };

/** What the service makes of items that another version, or a hand, has put into the table. */
export function oddItemTests(emulator: () => Emulator): void {
  /** A replica with one live pool that is as it should be, and a complete list. */
  const setUp = async () => {
    const table = await emulator().createTable();
    await table.put(itemNamed("good", { leaseSecs: 600 }));
    const proxy = await FaultProxy.start(table.endpoint);
    const service = await startReplica(table, { endpoint: proxy.url, lease: 2, grace: 2, env });
    const watch = new Watch(service.url);
    await watch.for("a complete list", ({ list }) => list?.complete === true);
    return {
      table,
      service,
      watch,
      /** Waits until a read that began after this has ended. */
      async untilRead() {
        const begun = proxy.reads().length;
        await until("the next reads", () => (proxy.reads().length > begun + 2 ? true : undefined));
      },
      async [Symbol.asyncDispose]() {
        await watch[Symbol.asyncDispose]();
        await service[Symbol.asyncDispose]();
        proxy[Symbol.dispose]();
      },
    };
  };

  test.concurrent("is listed where all that matters is there, whatever else it has", async () => {
    const nowMs = Date.now();
    const extra = json("extra-fields", {
      future: { nested: [1, null] },
      key: { ...keyNamed("extra-fields"), shard: 3 },
    });
    const items: readonly Item[] = [
      odd(
        "capacity-left-out",
        registrationOf(
          JSON.stringify({
            key: keyNamed("capacity-left-out"),
            location: { region: "r" },
            model: "m",
          }),
        ),
      ),
      odd("expiry-missing", { expires_at: undefined }),
      odd("expiry-odd", { expires_at: { S: "soon" } }),
      odd("extra-attributes", {
        schema: { N: "2" },
        relays: { L: [{ M: { ip: { S: "10.0.0.1" } } }] },
        token: { B: Uint8Array.of(1, 2) },
        flag: { BOOL: true },
        none: { NULL: true },
        set: { SS: ["a", "b"] },
      }),
      odd("extra-fields", extra),
      odd("number-with-exponent", { renewed_at: { N: `${nowMs / 1e12}E12` } }),
      odd("number-with-fraction-of-zero", {
        renewed_at: { N: `${nowMs}.000` },
        lease_s: { N: "6E2" },
      }),
      odd(
        "reordered",
        registrationOf(
          JSON.stringify(Object.fromEntries(Object.entries(poolNamed("reordered")).reverse())),
        ),
      ),
    ];
    const table = await emulator().createTable();
    for (const item of items) await table.put(item);
    await using service = await startReplica(table, { lease: 2, env });
    await using watch = new Watch(service.url);
    const { list } = await watch.for("a complete list", ({ list }) => list?.complete === true);
    expect(names(list)).toEqual(items.map(({ sk }) => sk?.S?.split("/")[2] ?? ""));
    for (const pool of list?.pools ?? []) {
      expect(Object.keys(pool)).toEqual([
        "key",
        "location",
        "model",
        "capabilities",
        "frontends",
        "capacity",
        "relay_identities",
      ]);
      expect(Object.keys(pool.key)).toEqual(["cluster_id", "namespace", "dgd_name"]);
    }
    // A newer version's fields stay in the table when the same pool registers through this one.
    await registerSoon(service.url, poolNamed("extra-fields"));
    const written = await table.get(skNamed("extra-fields"));
    expect(written?.registration).toEqual(extra.registration);
    const attributes = await table.get(skNamed("extra-attributes"));
    await registerSoon(service.url, poolNamed("extra-attributes"));
    expect(await table.get(skNamed("extra-attributes"))).toMatchObject({
      schema: { N: "2" },
      registration: attributes?.registration ?? {},
    });
    expect(complaints(service)).toEqual([]);
  });

  const spoilt: readonly (readonly [name: string, attributes: Attributes])[] = [
    ["no-registration", { registration: undefined }],
    ["no-renewal", { renewed_at: undefined }],
    ["no-lease", { lease_s: undefined }],
    ["no-region", { written_in: undefined }],
    ["registration-a-number", { registration: { N: "5" } }],
    ["registration-a-map", { registration: { M: { key: { S: "a" } } } }],
    ["renewal-a-text", { renewed_at: { S: String(Date.now()) } }],
    ["renewal-a-null", { renewed_at: { NULL: true } }],
    ["lease-a-text", { lease_s: { S: "600" } }],
    ["lease-a-list", { lease_s: { L: [{ N: "600" }] } }],
    ["region-a-number", { written_in: { N: "1" } }],
    ["text-empty", registrationOf("")],
    ["text-cut", registrationOf('{"key":{"cluster_id":"aws')],
    ["text-null", registrationOf("null")],
    ["text-a-list", registrationOf("[]")],
    ["text-a-number", registrationOf("1e999")],
    ["text-deep", registrationOf("[".repeat(50_000))],
    ["model-missing", json("model-missing", { model: undefined })],
    ["model-a-number", json("model-a-number", { model: 5 })],
    ["frontend-a-path", json("frontend-a-path", { frontends: ["http://a/b"] })],
    ["workers-negative", json("workers-negative", { capacity: [{ sku: "H100", workers: -1 }] })],
    ["key-of-another", json("key-of-another", { key: keyNamed("somebody-else") })],
    ["key-missing", json("key-missing", { key: undefined })],
    ["key-polluting", registrationOf('{"__proto__":{"key":{}},"constructor":1}')],
  ];
  /** Sort keys that are of no registration, or of another one. */
  const strangeKeys = ["aws-west/one-slash", "//", "a/b/c/d", "aws-west/dynamo/%2f", "no-slash"];
  const undecodable: readonly Item[] = [
    ...spoilt.map(([name, attributes]) => odd(name, attributes)),
    ...strangeKeys.map((sk) => ({ ...odd("any", json("any", {})), sk: { S: sk } })),
  ];
  // One after the other on each of a few replicas: each needs a list that is complete without it.
  const shares = [0, 1, 2, 3, 4, 5].map((share) =>
    undecodable.filter((_, index) => index % 6 === share),
  );
  for (const share of shares) {
    const which = share.map(({ sk }) => sk?.S?.replace("aws-west/dynamo/", "")).join(", ");
    test.concurrent(`that can't be decoded is left out, and the list is not complete while it is there: ${which}`, async () => {
      await using given = await setUp();
      const { table, service, watch } = given;
      for (const item of share) {
        const sk = item.sk?.S ?? "";
        await table.put(item);
        await watch.for(`a list without ${sk}`, ({ list }) => list?.complete === false);
        await table.delete(sk);
        await watch.for("a complete list", ({ list }) => list?.complete === true);
      }
      expect(complaints(service)).toEqual(share.map(({ sk }) => sk?.S ?? ""));
      const ready = watch.samples.findIndex(({ status }) => status === 200);
      for (const { list, status, body } of watch.samples.slice(ready)) {
        expect(status, body).toBe(200);
        expect(names(list)).toEqual(["good"]);
      }
      expect(service.isRunning).toBe(true);
    });
  }

  test.concurrent("that can't be decoded is logged once, and hides no other", async () => {
    await using given = await setUp();
    const { table, service, watch } = given;
    for (const item of undecodable) await table.put(item);
    await table.put(itemNamed("late", { leaseSecs: 600 }));
    await watch.for("a list of all the others", ({ list }) => names(list)?.join() === "good,late");
    await given.untilRead();
    expect(complaints(service).sort()).toEqual(undecodable.map(({ sk }) => sk?.S ?? "").sort());
    expect(watch.samples.at(-1)?.list?.complete).toBe(false);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  });

  test.concurrent("that can't be decoded does not matter any more once its lease has ended, in its own region or another", async () => {
    await using given = await setUp();
    const { table, service, watch } = given;
    const leaseSecs = 3;
    const broken = (name: string, writtenIn: string): Item => ({
      ...itemNamed(name, { leaseSecs, writtenIn }),
      registration: { S: "{" },
    });
    const ours = broken("broken-here", "us-east-1");
    await table.put(ours);
    const lapsesAtMs = Number(ours.renewed_at?.N) + leaseSecs * 1000;
    await watch.for("a list that may lack it", ({ list }) => list?.complete === false);
    const { answeredAtMs } = await watch.for(
      "a complete list",
      ({ list }) => list?.complete === true,
    );
    expect(answeredAtMs).toBeGreaterThan(lapsesAtMs);

    const theirs = broken("broken-there", "eu-west-1");
    await table.put(theirs);
    const endsAtMs = Number(theirs.renewed_at?.N) + (leaseSecs + 2) * 1000;
    await watch.for("a list that may lack it", ({ list }) => list?.complete === false);
    const { answeredAtMs: laterMs } = await watch.for(
      "a complete list",
      ({ list }) => list?.complete === true,
    );
    expect(laterMs).toBeGreaterThan(endsAtMs);
    expect(complaints(service)).toEqual([skNamed("broken-here"), skNamed("broken-there")]);
  });

  const now = { N: String(Date.now()) };
  const past = { N: "1700000000000" };
  const lapsed: Readonly<Record<string, readonly Item[]>> = {
    "in whole numbers": [
      odd("lease-of-zero", { lease_s: { N: "0" }, renewed_at: past }),
      odd("long-gone", { ...registrationOf("{"), renewed_at: past }),
      odd("from-1970", { ...registrationOf("{"), renewed_at: { N: "0" } }),
      odd("with-exponent", { ...registrationOf("{"), renewed_at: { N: "1.7E12" } }),
    ],
    "in negative numbers": [
      odd("renewal-negative", { renewed_at: { N: "-5" } }),
      odd("renewal-negative-with-exponent", { renewed_at: { N: "-1.7E12" } }),
      odd("lease-negative", { lease_s: { N: "-600" }, renewed_at: now }),
    ],
    "in fractions": [
      odd("renewal-with-a-fraction", { renewed_at: { N: "1700000000000.5" } }),
      odd("lease-with-a-fraction", { lease_s: { N: "1.5" }, renewed_at: past }),
    ],
  };
  for (const [how, items] of Object.entries(lapsed)) {
    test.concurrent(`whose lease can be read and has ended is neither listed nor missed: ${how}`, async () => {
      await using given = await setUp();
      const { table, service, watch } = given;
      for (const item of items) {
        await table.put(item);
        await given.untilRead();
        await watch.for(
          `a complete list beside ${item.sk?.S}`,
          ({ list }) => Boolean(list?.complete && names(list)?.join() === "good"),
          // Where it is missed it is so for ever.
          8000,
        );
      }
      expect(complaints(service)).toEqual([]);
    });
  }

  test.concurrent("that becomes undecodable while its pool is listed makes the list incomplete, until a registration mends it", async () => {
    await using given = await setUp();
    const { table, service, watch } = given;
    {
      await using _ = new Relays(service.url, [poolNamed("mended")]);
      await watch.for("a complete list with it", ({ list }) =>
        Boolean(list?.complete && lists(list, "mended")),
      );
    }
    await table.set(skNamed("mended"), {
      registration: { S: "{" },
      renewed_at: { N: String(Date.now() + 600_000) },
    });
    await watch.for("a list that may lack it", ({ list }) => list?.complete === false);
    await given.untilRead();
    expect(complaints(service)).toEqual([skNamed("mended")]);
    await using _ = new Relays(service.url, [poolNamed("mended")]);
    await watch.for("a complete list with it", ({ list }) =>
      Boolean(list?.complete && lists(list, "mended")),
    );
    expect(JSON.parse((await table.get(skNamed("mended")))?.registration?.S ?? "")).toEqual(
      poolNamed("mended"),
    );
  });

  test.concurrent("that was renewed in the future by more than the skew is listed, and a warning says so", async () => {
    await using given = await setUp();
    const { table, service, watch } = given;
    await table.put(itemNamed("ahead", { renewedAtMs: Date.now() + 3_600_000 }));
    await watch.for("a list with it", ({ list }) =>
      Boolean(list?.complete && lists(list, "ahead")),
    );
    await given.untilRead();
    expect(complaints(service)).toEqual([skNamed("ahead")]);
  });

  test.concurrent("of another partition is nobody's pool", async () => {
    await using given = await setUp();
    const { table, service, watch } = given;
    const other = {
      ...itemNamed("other"),
      pk: { S: "router" },
      registration: { S: "{" },
    };
    await table.put(other);
    await given.untilRead();
    expect(names(watch.samples.at(-1)?.list)).toEqual(["good"]);
    expect(watch.samples.at(-1)?.list?.complete).toBe(true);
    expect(complaints(service)).toEqual([]);
  });
}
