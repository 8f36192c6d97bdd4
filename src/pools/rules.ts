import { limits } from "../runtime/limits.ts";
import { CONTROL_CHARACTER, isBlank } from "../runtime/text.ts";
import { originUrl, type PoolKey, sortKey } from "./pool.ts";

const SURROUNDING_WHITE_SPACE = /^\p{White_Space}|\p{White_Space}$/u;

/** What a rule says of a value that breaks it: the part of arktype's `Traversal` that rules use. */
export interface RuleContext {
  mustBe(expected: string): false;
}

/**
 * The rules of the wire format that types don't say. The schema consists of them and of types; they
 * are apart from it since they are used without it, too.
 */
export const rules = {
  isText,
  isLabel,
  isKeyPart,
  isKey,
  isOptionalText,
  isFrontend,
  isWorkers,
};

function isText(text: string, ctx: RuleContext): boolean {
  if (!text.isWellFormed()) return ctx.mustBe("well-formed Unicode");
  if (CONTROL_CHARACTER.test(text)) return ctx.mustBe("free of control characters");
  return true;
}

function isLabel(text: string, ctx: RuleContext): boolean {
  return !isBlank(text) || ctx.mustBe("a string that is not blank");
}

function isKeyPart(text: string, ctx: RuleContext): boolean {
  const bytes = Buffer.byteLength(text);
  if (bytes < 1 || bytes > limits.keyPartBytes) {
    return ctx.mustBe(`1 to ${limits.keyPartBytes} bytes long`);
  }
  return !SURROUNDING_WHITE_SPACE.test(text) || ctx.mustBe("free of white space at either end");
}

function isKey(key: PoolKey, ctx: RuleContext): boolean {
  return (
    Buffer.byteLength(sortKey(key)) <= limits.sortKeyBytes ||
    ctx.mustBe(`at most ${limits.sortKeyBytes} bytes long, with % and / counting as three`)
  );
}

function isOptionalText(value: unknown, ctx: RuleContext): value is string | null {
  if (value === null) return true;
  return typeof value === "string" ? isText(value, ctx) : ctx.mustBe("a string or null");
}

function isFrontend(text: string, ctx: RuleContext): boolean {
  return (
    originUrl(text) !== undefined ||
    ctx.mustBe("an http or https URL with a host and no path, query, fragment or user")
  );
}

function isWorkers(workers: number, ctx: RuleContext): boolean {
  return (
    (Number.isInteger(workers) && workers >= 0 && workers <= limits.workers) ||
    ctx.mustBe(`a whole number from 0 to ${limits.workers}`)
  );
}
