import { responseOf } from "../../src/http/answer.ts";
import type { Explanation } from "../../src/http/page/client/explanation.ts";
import { pageAnswer } from "../../src/http/page/page.ts";

/** What the service does when it is asked for the explanation. */
type Answer = Explanation | (() => Response | Promise<Response>);

/** Serves the page, with an explanation that a test makes. */
export class PageServer implements AsyncDisposable {
  answer: Answer;
  /** The paths that were asked for so far. */
  readonly asked: string[] = [];
  readonly #port: number;
  #server: Bun.Server<undefined>;

  constructor(answer: Answer) {
    this.answer = answer;
    this.#server = this.#listen(0);
    this.#port = this.#server.port ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  /** How often the explanation was asked for. */
  get polls(): number {
    return this.asked.filter((path) => path === "/explain").length;
  }

  async goAway(): Promise<void> {
    await this.#server.stop(true);
  }

  comeBack(): void {
    this.#server = this.#listen(this.#port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.goAway();
  }

  #listen(port: number): Bun.Server<undefined> {
    return Bun.serve({
      hostname: "127.0.0.1",
      port,
      fetch: (request) => {
        const { pathname } = new URL(request.url);
        this.asked.push(pathname);
        // As behind a proxy, which takes its own part of the path away.
        const path = pathname.replace(/^\/behind\/a\/proxy/, "");
        if (path === "/") return responseOf(pageAnswer(request));
        if (path !== "/explain") return new Response(null, { status: 404 });
        return typeof this.answer === "function" ? this.answer() : Response.json(this.answer);
      },
    });
  }
}
