import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseRegistration } from "../../src/pools/parse.ts";
import { type Registration, sortKey } from "../../src/pools/pool.ts";
import { encode, type Item } from "../../src/registrations/dynamodb/item.ts";
import { DynamoStore } from "../../src/registrations/dynamodb/store.ts";
import { type RegistrationTable, TableError } from "../../src/registrations/dynamodb/table.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { openAnsweredTable } from "../support/aws-answers.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeTable } from "../support/fake-table.ts";
import { FUZZ_DEADLINE_MS, fuzz, mutatedBytes, mutatedValues } from "../support/fuzz.ts";
import { makeKey, makeRegistration } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";

const REGION = "us-west-2";
const [LEASE_SECS, GRACE_SECS, SKEW_SECS] = [15, 30, 2];
const NOW_MS = new FakeClock().wallMs();

function itemOf(registration: Registration, renewedAtMs = NOW_MS, writtenIn = REGION) {
  const renewal = { renewedAtMs, leaseSecs: LEASE_SECS, writtenIn };
  return {
    pk: { S: "pool" },
    sk: { S: sortKey(registration.key) },
    ...encode(JSON.stringify(registration), renewal),
  };
}

const GOOD = itemOf(makeRegistration({ key: makeKey("good") }));
const ITEMS = [
  itemOf(makeRegistration()),
  itemOf(makeRegistration({ key: makeKey("a/b%c"), frontends: [], capacity: [] })),
  itemOf(makeRegistration({ key: makeKey("elsewhere") }), NOW_MS - 20_000, "eu-central-1"),
  itemOf(makeRegistration({ key: makeKey("dead") }), NOW_MS - 3_600_000),
];

const anyOf = fc.constantFrom(...ITEMS);
/** Items of which one attribute is not quite right, or several are nothing like it. */
const anyItem: fc.Arbitrary<unknown> = fc.oneof(
  fc
    .tuple(anyOf, mutatedBytes(ITEMS.map(({ registration }) => registration.S)))
    .map(([item, text]) => ({ ...item, registration: { S: String(text) } })),
  fc
    .tuple(
      anyOf,
      fc.constantFrom("renewed_at", "lease_s"),
      mutatedBytes(["15", "1.7672256E12", `${NOW_MS}`]),
    )
    .map(([item, name, number]) => ({ ...item, [name]: { N: String(number) } })),
  fc
    .tuple(anyOf, mutatedBytes(ITEMS.map(({ sk }) => sk.S)))
    .map(([item, id]) => ({ ...item, sk: { S: String(id) } })),
  mutatedValues(ITEMS).filter((item) => typeof item === "object" && item !== null),
);

/** An attribute of an item, where it is of its type. */
function attribute(item: unknown, name: string, type: "S" | "N"): string | undefined {
  if (typeof item !== "object" || item === null) return undefined;
  const value: unknown = Object.entries(item).find(([each]) => each === name)?.[1];
  if (typeof value !== "object" || value === null) return undefined;
  const text: unknown = Object.entries(value).find(([each]) => each === type)?.[1];
  return typeof text === "string" ? text : undefined;
}

/** What is to become of an item: listed as this JSON, dead, or left out, where it may be live. */
function fateOf(item: unknown): { readonly json: string } | "dead" | "left out" {
  const numberOf = (name: string) => Number(attribute(item, name, "N") || Number.NaN);
  const [renewedAtMs, leaseSecs] = [numberOf("renewed_at"), numberOf("lease_s")];
  const hasTimes = Number.isFinite(renewedAtMs) && Number.isFinite(leaseSecs);
  const writtenIn = attribute(item, "written_in", "S");
  const allowanceSecs = SKEW_SECS + (writtenIn === REGION ? 0 : GRACE_SECS);
  if (hasTimes && renewedAtMs + (leaseSecs + allowanceSecs) * 1000 < NOW_MS) return "dead";
  const registration = readOf(attribute(item, "registration", "S"));
  const isWhole = hasTimes && writtenIn !== undefined && registration !== undefined;
  if (!isWhole || sortKey(registration.key) !== attribute(item, "sk", "S")) return "left out";
  return { json: JSON.stringify(registration) };
}

function readOf(text: string | undefined): Registration | undefined {
  return text === undefined ? undefined : parseRegistration(text);
}

function storeOver(table: RegistrationTable, listed: Map<string, string>) {
  const clock = new FakeClock();
  return new DynamoStore({
    table,
    region: REGION,
    leaseSecs: LEASE_SECS,
    heartbeatIntervalSecs: 5,
    pollIntervalSecs: 2,
    replicationGraceSecs: GRACE_SECS,
    skewSecs: SKEW_SECS,
    livePools: {
      put: (id, _, json) => listed.set(id, json),
      remove: (id) => listed.delete(id),
    },
    clock,
    runClock: new RunClock(clock, () => {}),
    log: recordedLog().log,
  });
}

test(
  "an item is listed as just what it says, or else the list says that it may lack something",
  () =>
    fuzz("items", anyItem, 1000, async (item) => {
      const table = new FakeTable();
      // What the store is told that an item is, DynamoDB may have other ideas of.
      table.items.set("odd", item as Item).set("good", GOOD);
      const listed = new Map<string, string>();
      const store = storeOver(table, listed);
      await store.open();
      const reasons = [...store.incompleteReasons()].join();
      for (const id of store.poolIds()) store.registrationOf(id);
      store.close();

      const expected = new Map([[GOOD.sk.S, GOOD.registration.S]]);
      const fate = fateOf(item);
      const id = attribute(item, "sk", "S");
      if (typeof fate === "object") expected.set(String(id), fate.json);
      expect(listed).toEqual(expected);
      // Without its key, which DynamoDB lets no item be, it is of no pool.
      const isMissed = fate === "left out" && id !== undefined;
      expect(reasons.includes("can't be decoded")).toBe(isMissed);
    }),
  FUZZ_DEADLINE_MS,
);

const BODIES: Readonly<Record<string, unknown>> = {
  DescribeTable: {
    Table: {
      TableName: "pools",
      TableStatus: "ACTIVE",
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      AttributeDefinitions: [
        { AttributeName: "pk", AttributeType: "S" },
        { AttributeName: "sk", AttributeType: "S" },
      ],
    },
  },
  DescribeTimeToLive: {
    TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName: "expires_at" },
  },
  Query: { Items: ITEMS, Count: ITEMS.length, ScannedCount: ITEMS.length },
  UpdateItem: { Attributes: encode("{}", { renewedAtMs: 1, leaseSecs: 15, writtenIn: REGION }) },
  refusal: { __type: "com.amazonaws.dynamodb.v20120810#ThrottlingException", message: "slow down" },
};

const anyAnswer = fc.record({
  status: fc.constantFrom(200, 200, 200, 400, 500),
  body: fc.oneof(
    mutatedValues(Object.values(BODIES)).map((value) => String(JSON.stringify(value))),
    mutatedBytes(Object.values(BODIES).map((body) => JSON.stringify(body))).map(String),
  ),
});

test(
  "whatever answers in place of DynamoDB, the table gives items or says what went wrong",
  async () => {
    let answer: { readonly status: number; readonly body: string } | undefined;
    using answered = await openAnsweredTable(
      (operation) => answer ?? { status: 200, body: JSON.stringify(BODIES[operation]) },
    );
    const { table } = answered;
    const signal = AbortSignal.timeout(FUZZ_DEADLINE_MS);
    const renewal = { renewedAtMs: NOW_MS, leaseSecs: LEASE_SECS, writtenIn: REGION };
    const actions: Readonly<Record<string, () => Promise<unknown>>> = {
      check: () => table.check(signal),
      async pages() {
        for await (const page of table.pages(signal)) {
          for (const item of page) expect(item).toBeObject();
          // Else a next page that is always there would go on for ever.
          break;
        }
      },
      write: async () => {
        const old = await table.write(
          { id: "a/b/c", text: "{}", renewal, present: "kept", isLate: () => false },
          signal,
        );
        expect(old).toBeObject();
      },
    };
    // All is well with what is not mutated.
    for (const action of Object.values(actions)) await action();
    const anyAction = fc.constantFrom(...Object.keys(actions));
    await fuzz(
      "answers of DynamoDB",
      fc.tuple(anyAction, anyAnswer),
      300,
      async ([name, given]) => {
        answer = given;
        try {
          await actions[name]?.();
        } catch (error) {
          if (!(error instanceof TableError)) throw error;
          expect(error.message).not.toMatch(/SyntaxError|TypeError|cannot reach|\n/);
        }
      },
    );
  },
  FUZZ_DEADLINE_MS,
);
