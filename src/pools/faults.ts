import "./arktype-setup.ts";
import { type ArkError, type } from "arktype";
import { quoted } from "../runtime/text.ts";
import { members, registrationBody } from "./schema.ts";

/**
 * What is wrong with a body that the schema doesn't allow. Each list is cut behind its first faulty
 * member: a body of a hundred thousand of them would take a second to describe.
 */
export function faultsOf(body: Readonly<Record<string, unknown>>): string {
  const cut = { ...body };
  for (const [name, member] of Object.entries(members)) {
    const list = body[name];
    if (Array.isArray(list)) {
      cut[name] = list.slice(0, list.findIndex((value) => !member.allows(value)) + 1);
    }
  }
  const checked = registrationBody(cut);
  if (!(checked instanceof type.errors)) {
    throw new Error("the schema allows what its compiled check has refused");
  }
  return checked.map(explain).join("; ");
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
