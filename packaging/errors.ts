/** Why a file can't be made: one line that says what is wrong, where, and what to do. */
export class PackagingError extends Error {
  override readonly name = "PackagingError";
}
