/**
 * What can go wrong in a way that a user can mend. Anything else that is thrown is a fault of this
 * program: "internal error" to clients, a line in the log for us.
 *
 * - `usage`: the command line is wrong (exit 2)
 * - `startup`: the service can't start (exit 1)
 * - `invalid`, `too-large`, `unsupported-media-type`: the request is wrong
 * - `unavailable`: the request is right, but can't be served now
 */
export type ErrorCode =
  | "usage"
  | "startup"
  | "invalid"
  | "too-large"
  | "unsupported-media-type"
  | "unavailable";

/** The one error type: a code for the program, a message for the person. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The words of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
