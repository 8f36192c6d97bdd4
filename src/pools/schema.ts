import "./arktype-setup.ts";
import { type ArkError, type Traversal, type } from "arktype";
import { ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import { CONTROL_CHARACTER, isBlank, quoted } from "../runtime/text.ts";
import { originUrl, type PoolKey, type Registration, sortKey } from "./pool.ts";

const SURROUNDING_WHITE_SPACE = /^\p{White_Space}|\p{White_Space}$/u;

function isText(text: string, ctx: Traversal): boolean {
  if (!text.isWellFormed()) return ctx.mustBe("well-formed Unicode");
  if (CONTROL_CHARACTER.test(text)) return ctx.mustBe("free of control characters");
  return true;
}

function isKeyPart(text: string, ctx: Traversal): boolean {
  const bytes = Buffer.byteLength(text);
  if (bytes < 1 || bytes > limits.keyPartBytes) {
    return ctx.mustBe(`1 to ${limits.keyPartBytes} bytes long`);
  }
  return !SURROUNDING_WHITE_SPACE.test(text) || ctx.mustBe("free of white space at either end");
}

function isKey(key: PoolKey, ctx: Traversal): boolean {
  return (
    Buffer.byteLength(sortKey(key)) <= limits.sortKeyBytes ||
    ctx.mustBe(`at most ${limits.sortKeyBytes} bytes long, with % and / counting as three`)
  );
}

function isWorkers(workers: number, ctx: Traversal): boolean {
  return (
    (Number.isInteger(workers) && workers >= 0 && workers <= limits.workers) ||
    ctx.mustBe(`a whole number from 0 to ${limits.workers}`)
  );
}

const text = type("string").narrow(isText);
const label = text.narrow(
  (value, ctx) => !isBlank(value) || ctx.mustBe("a string that is not blank"),
);
const keyPart = text.narrow(isKeyPart);
const optionalText = type("unknown").narrow((value, ctx): value is string | null => {
  if (value === null) return true;
  return typeof value === "string" ? isText(value, ctx) : ctx.mustBe("a string or null");
});
const frontend = text.narrow(
  (value, ctx) =>
    originUrl(value) !== undefined ||
    ctx.mustBe("an http or https URL with a host and no path, query, fragment or user"),
);

const capacity = type({ sku: label, workers: type("number").narrow(isWorkers) });

/** What each list of a registration holds. */
const members = { capabilities: label, frontends: frontend, capacity };

/** The wire format of a registration once {@link fillIn} has put in what may be left out. */
const registrationBody = type({
  key: type({ cluster_id: keyPart, namespace: keyPart, dgd_name: keyPart }).narrow(isKey),
  location: { region: label, availability_zone: optionalText, datacenter: optionalText },
  model: label,
  capabilities: members.capabilities.array(),
  frontends: members.frontends.array(),
  capacity: members.capacity.array(),
});

/**
 * The registration that a JSON text says. Unknown fields are ignored, and of a repeated field the
 * last counts (RFC 8259, section 4, leaves that open; every JSON parser here does it).
 *
 * @throws ServiceError `invalid`, naming each field at fault
 */
export function parseRegistration(text: string): Registration {
  const json = parseJson(text);
  if (!isObject(json)) throw new ServiceError("invalid", "the body must be a JSON object");
  fillIn(json);
  if (!registrationBody.allows(json)) throw new ServiceError("invalid", faults(json));
  const { key, location } = json;
  return {
    key: { cluster_id: key.cluster_id, namespace: key.namespace, dgd_name: key.dgd_name },
    location: {
      region: location.region,
      availability_zone: location.availability_zone,
      datacenter: location.datacenter,
    },
    model: json.model,
    capabilities: json.capabilities,
    frontends: json.frontends.map((url) => originUrl(url) ?? url),
    // Adding 0 makes -0, which JSON can say, a plain 0.
    capacity: json.capacity.map(({ sku, workers }) => ({ sku, workers: workers + 0 })),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("invalid", "the body is not valid JSON");
  }
}

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Puts in what a registration may leave out, so that the schema has one form of each field. */
function fillIn(body: JsonObject): void {
  for (const list of Object.keys(members)) body[list] ??= [];
  if (!isObject(body.location)) return;
  for (const place of ["availability_zone", "datacenter"]) body.location[place] ??= null;
}

/**
 * What is wrong with a body that the schema doesn't allow. Each list is cut behind its first faulty
 * member: a body of a hundred thousand of them would take a second to describe.
 */
function faults(body: JsonObject): string {
  const cut = { ...body };
  for (const [name, member] of Object.entries(members)) {
    const list = body[name];
    if (Array.isArray(list)) {
      cut[name] = list.slice(0, list.findIndex((value) => !member.allows(value)) + 1);
    }
  }
  const checked = registrationBody(cut);
  return checked instanceof type.errors ? checked.map(explain).join("; ") : "";
}

/** One fault in words: the field, the rule, and what was found there. */
function explain(error: ArkError): string {
  const found = error.code === "required" ? "missing" : describe(error.data);
  return `${error.propString} must be ${error.expected} (was ${found})`;
}

/** A value in a few words, whatever its size: a long string is cut, and nothing is walked into. */
function describe(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
