import type { Clock } from "../runtime/clock.ts";
import { messageOf, ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";
import type { Source } from "./api-server.ts";

/**
 * What a {@link Source} holds, as of a minute ago at most (`limits.credentialsMs`). A file that can't be
 * read, or holds something else for a while, leaves the text before it in use.
 */
export class RotatedText {
  readonly #source: Source;
  /** Throws where the text is not what it should be. */
  readonly #check: (text: string) => void;
  readonly #clock: Clock;
  readonly #log: Log;
  #text: string | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    source: Source,
    check: (text: string) => void,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#source = source;
    this.#check = check;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * @throws ServiceError `startup` where the text has never been right
   */
  async read(): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#text !== undefined && nowMs - this.#readAtMs < limits.credentialsMs) {
      return this.#text;
    }
    const { where } = this;
    try {
      const text =
        "file" in this.#source
          ? (await Bun.file(this.#source.file).text()).trim()
          : this.#source.text;
      this.#check(text);
      this.#text = text;
    } catch (error) {
      const problem = `${where}: ${messageOf(error)}`;
      if (this.#text === undefined) throw new ServiceError("startup", problem);
      this.#log.warn("a credential can't be read; the one before stays in use", { problem });
    }
    this.#readAtMs = nowMs;
    return this.#text;
  }

  /** Has the next `read` look at the file again. */
  expire(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }

  /** The file, for messages. */
  get where(): string {
    return "file" in this.#source ? this.#source.file : "the kubeconfig itself";
  }
}
