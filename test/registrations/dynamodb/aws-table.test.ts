import { describe, expect, test } from "bun:test";
import { type RegistrationTable, TableError } from "../../../src/registrations/dynamodb/table.ts";
import { openAnsweredTable } from "../../support/aws-answers.ts";
import { thrownBy } from "../../support/thrown-by.ts";

const signal = new AbortController().signal;
const renewal = { renewedAtMs: 1, leaseSecs: 15, writtenIn: "us-west-2" };
const write = { id: "a/b/c", text: "{}", renewal, present: "kept", isLate: () => false } as const;

const ACTIONS: Readonly<Record<string, (table: RegistrationTable) => Promise<unknown>>> = {
  check: (table) => table.check(signal),
  read: (table) => Array.fromAsync(table.pages(signal)),
  write: (table) => table.write(write, signal),
};

const key = (AttributeDefinitions: unknown, KeySchema: unknown = [{ AttributeName: "pk" }]) => ({
  Table: { KeySchema, AttributeDefinitions },
});
const ttl = (TimeToLiveStatus: unknown) => ({ TimeToLiveDescription: { TimeToLiveStatus } });

describe("an answer that is not in the form of DynamoDB's is a fault of the table that may pass", () => {
  const CASES: readonly (readonly [keyof typeof ACTIONS, string])[] = [
    ["check", "<html>"],
    ["check", JSON.stringify(key({}))],
    ["check", JSON.stringify(key([], [null]))],
    ["check", JSON.stringify(ttl(1))],
    ["read", "<html>"],
    ["read", '{"Items":['],
    ["read", "null"],
    ["read", '{"Items":{}}'],
    ["read", '{"Items":[null]}'],
    ["read", '{"Items":[],"LastEvaluatedKey":"a"}'],
    ["write", "<html>"],
    ["write", '{"Attributes":"{}"}'],
  ];
  test.each(CASES)("%s: %s", async (action, body) => {
    using answered = await openAnsweredTable(() => ({ status: 200, body }));
    const error = await thrownBy(async () => ACTIONS[action]?.(answered.table));
    expect(error).toBeInstanceOf(TableError);
    expect(error.message).toMatch(/^the answer to dynamodb:\w+ is not in the form of DynamoDB's; /);
    expect(error).toMatchObject({ fault: "error", isDefinite: false });
  });
});

test("a write that is late is not sent, and not tried again", async () => {
  let sent = 0;
  using answered = await openAnsweredTable(() => {
    sent += 1;
    return { status: 500, body: "{}" };
  });
  for (const attempts of [0, 1]) {
    sent = 0;
    const isLate = () => sent === attempts;
    const error = await thrownBy(async () => answered.table.write({ ...write, isLate }, signal));
    expect(error).toBeInstanceOf(TableError);
    expect(error).toMatchObject({
      fault: "timeout",
      message: "this process could not send it in time",
    });
    expect(sent).toBe(attempts);
  }
});
