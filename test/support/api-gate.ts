import type { Certificates } from "./certificates.ts";

/** What was asked for through the gate. */
export interface GatedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * Stands before a real API server, to record what a client asks for, and to hold or refuse it.
 */
export class ApiGate implements Disposable {
  readonly requests: GatedRequest[] = [];
  /** Is done before a request goes on; a response is the answer in place of the server's. */
  before: (request: GatedRequest) => Promise<Response | undefined> | undefined = () => undefined;
  readonly #server: Bun.Server<undefined>;
  #ended = Promise.withResolvers<typeof END>();

  constructor(certificates: Certificates, upstream: string) {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      tls: { cert: Bun.file(certificates.chain), key: Bun.file(certificates.key) },
      fetch: async (request) => {
        const { pathname, search, searchParams: query } = new URL(request.url);
        const gated = { method: request.method, path: pathname, query };
        this.requests.push(gated);
        const instead = await this.before(gated);
        if (instead !== undefined) return instead;
        const answer = await fetch(`${upstream}${pathname}${search}`, {
          headers: { Authorization: request.headers.get("authorization") ?? "" },
          tls: { ca: Bun.file(certificates.root) },
          proxy: false,
          timeout: false,
        });
        const { status, headers, body } = answer;
        const type = headers.get("content-type") ?? "";
        return new Response(query.has("watch") && body !== null ? this.#untilEnded(body) : body, {
          status,
          headers: { "Content-Type": type },
        });
      },
    });
  }

  #untilEnded(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const ended = this.#ended.promise;
    return new ReadableStream({
      async pull(controller) {
        // A server that breaks off ends it too.
        const next = await Promise.race([reader.read().catch(() => END), ended]);
        if (next.value !== undefined) return controller.enqueue(next.value);
        controller.close();
        await reader.cancel().catch(() => {});
      },
      cancel: () => reader.cancel().catch(() => {}),
    });
  }

  get url(): string {
    return this.#server.url.origin;
  }

  /** Ends every watch in order. */
  endWatches(): void {
    this.#ended.resolve(END);
    this.#ended = Promise.withResolvers();
  }

  [Symbol.dispose](): void {
    this.endWatches();
    this.#server.stop(true);
  }
}

const END = { done: true, value: undefined } as const;
