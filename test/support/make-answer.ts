import type { Answer } from "../../src/http/answer.ts";

/** A 200 with nothing in it, unless said otherwise. */
export function makeAnswer(overrides: Partial<Answer> = {}): Answer {
  return { status: 200, headers: {}, body: null, ...overrides };
}
