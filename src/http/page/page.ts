import { Representation } from "../../directory/representation.ts";
import type { Answer } from "../answer.ts";
import { chooseCoding, conditionOf, isUnchanged } from "../negotiate.ts";
import { bundle } from "./bundle.ts" with { type: "macro" };

const { html, scriptHash, styleHash } = bundle();

const representation = new Representation(html);

/**
 * Nothing but the page's own script and style runs, it talks to nobody but this service, nobody may
 * frame it, and text can't become markup (Trusted Types).
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `script-src '${scriptHash}'`,
  `style-src '${styleHash}'`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The answer to `GET /`: the page for people, or 304 where the browser has it already. */
export function pageAnswer(request: Request): Answer {
  const coding = chooseCoding(request, representation);
  const headers = new Headers({
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    // For browsers that don't know frame-ancestors.
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    ETag: representation.etags[coding],
    Vary: "Accept-Encoding",
  });
  if (isUnchanged(conditionOf(request), representation))
    return { status: 304, headers, body: null };
  if (coding !== "identity") headers.set("Content-Encoding", coding);
  return { status: 200, headers, body: representation.in(coding) };
}
