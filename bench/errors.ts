/** Why the figures can't be had, in words for whoever asked for them. */
export class BenchError extends Error {
  override readonly name = "BenchError";
}
