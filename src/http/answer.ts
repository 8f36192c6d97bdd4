/**
 * What is answered to a request: the arguments of a `Response`. Counting has to look at each answer,
 * and looking at a `Response` costs as much as the rest of counting.
 */
export interface Answer {
  readonly status: number;
  readonly headers: Headers | Readonly<Record<string, string>>;
  readonly body: string | Blob | Uint8Array<ArrayBuffer> | null;
  /**
   * Whether its client was allowed to wait for it (`Prefer: wait`), or has gone while it did. Where it
   * was promised, how long that took says nothing of how fast the service is.
   */
  readonly mayHaveWaited?: boolean;
}

export function responseOf(answer: Answer): Response {
  return new Response(answer.body, answer);
}
