import { ServiceError } from "../runtime/errors.ts";
import { compiledSchema } from "./compiled-schema.ts" with { type: "macro" };
import { originUrl, type Registration } from "./pool.ts";
import { type RuleContext, rules } from "./rules.ts";
import type { members, RegistrationBody } from "./schema.ts";

/** What the compiled schema wants besides a value: the place in it, and words for what it must be. */
interface Context extends RuleContext {
  readonly path: PropertyKey[];
}

// The text is a constant, and its function answers as the schema's own does.
const compiled = new Function("rules", compiledSchema())(rules) as (
  json: unknown,
  ctx: Context,
) => json is RegistrationBody;

/** The lists of the schema, which may be left out. */
const LISTS = { capabilities: true, frontends: true, capacity: true } satisfies Record<
  keyof typeof members,
  true
>;

/** Whether the schema allows what JSON says, found without the schema. */
export function isAllowed(json: unknown): json is RegistrationBody {
  return compiled(json, { path: [], mustBe: () => false });
}

/**
 * The registration that a JSON text says, or undefined where it says none. Unknown fields are
 * ignored, and of a repeated field the last counts (RFC 8259, section 4, leaves that open; every
 * JSON parser here does it).
 */
export function parseRegistration(text: string): Registration | undefined {
  const json = parseJson(text);
  if (!isObject(json)) return undefined;
  fillIn(json);
  if (!isAllowed(json)) return undefined;
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

/** Why a text says no registration: an `invalid` error that names each field at fault. */
export async function refusalOf(text: string): Promise<ServiceError> {
  const json = parseJson(text);
  if (json === undefined) return new ServiceError("invalid", "the body is not valid JSON");
  if (!isObject(json)) return new ServiceError("invalid", "the body must be a JSON object");
  fillIn(json);
  // Loaded with the first body at fault, for arktype takes more memory than the rest of the service.
  const { faultsOf } = await import("./faults.ts");
  return new ServiceError("invalid", faultsOf(json));
}

/** What a text says, or undefined where it is no JSON: no JSON says that. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Puts in what a registration may leave out, so that the schema has one form of each field. */
function fillIn(body: JsonObject): void {
  for (const list of Object.keys(LISTS)) body[list] ??= [];
  if (!isObject(body.location)) return;
  for (const place of ["availability_zone", "datacenter"]) body.location[place] ??= null;
}
