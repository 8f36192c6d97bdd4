import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { parseRegistration } from "../../pools/parse.ts";
import { type Registration, sortKey } from "../../pools/pool.ts";

/** An item of the table, or the part of one that was asked for. */
export type Item = Readonly<Record<string, AttributeValue>>;

/** The one partition that all pools are in, so that one strongly consistent Query reads them. */
export const PARTITION = "pool";

/** Items are swept by DynamoDB this long after they were last renewed, dead for long by then. */
const KEPT_SECS = 7 * 24 * 60 * 60;

/** When a pool was last registered, for how long, and where. */
export interface Renewal {
  /** Milliseconds since 1970 on the writer's clock. */
  readonly renewedAtMs: number;
  readonly leaseSecs: number;
  /** The writer's region. */
  readonly writtenIn: string;
}

/** The attributes that a registration sets. */
export function encode(text: string, renewal: Renewal) {
  return {
    registration: { S: text },
    renewed_at: { N: String(renewal.renewedAtMs) },
    lease_s: { N: String(renewal.leaseSecs) },
    written_in: { S: renewal.writtenIn },
    expires_at: { N: String(Math.floor(renewal.renewedAtMs / 1000) + KEPT_SECS) },
  };
}

/** An item as it was found. What is missing or of another type is undefined. */
export interface Decoded {
  readonly id: string | undefined;
  readonly text: string | undefined;
  readonly renewedAtMs: number | undefined;
  readonly leaseSecs: number | undefined;
  readonly writtenIn: string | undefined;
}

/** Takes an item as the answer of a server, which may not be what DynamoDB's API says. */
export function decode(item: Item): Decoded {
  return {
    id: textOf(item.sk?.S),
    text: textOf(item.registration?.S),
    renewedAtMs: finite(item.renewed_at?.N),
    leaseSecs: finite(item.lease_s?.N),
    writtenIn: textOf(item.written_in?.S),
  };
}

/** What has to be an object, of attributes or of members of an answer. */
export function itemOf(value: unknown): Item {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError("it is no object");
  }
  // What its members hold is for whoever decodes them to check.
  return value as Item;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The number that an attribute says. DynamoDB may write it in any form, such as 1.7E12. */
export function finite(value: unknown): number | undefined {
  const text = textOf(value);
  const number = text ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/**
 * The registration that an item's text says, where it is one, and of the pool that the item's sort
 * key says.
 */
export function parseText(id: string, text: string): Registration | undefined {
  const registration = parseRegistration(text);
  return registration !== undefined && sortKey(registration.key) === id ? registration : undefined;
}
