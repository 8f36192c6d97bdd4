import type { Clock } from "../runtime/clock.ts";
import { ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { ListeningSockets } from "./listening-sockets.ts";

/** What listens on the service's address. */
export interface Listener {
  /** Closes each connection with the next answer on it, and says so in that answer. */
  retire(): void;
  /**
   * Listens no longer, from this call on, and closes idle connections; all of them where `isForced`.
   * Resolves when the requests that are running have ended.
   */
  stop(isForced?: boolean): Promise<void>;
}

export interface ListenersOptions {
  readonly clock: Clock;
  readonly openSockets: () => Promise<ListeningSockets | undefined>;
}

/**
 * The listeners of one address: one, and those before it for a while after they were replaced.
 *
 * A listener that closes takes with it the connections that the system has made for it and that it
 * has not accepted yet, and idle ones on which a request may be on its way. So one that was replaced
 * gets no more connections at once, but closes only when all that it had must have ended by themselves.
 */
export class Listeners<L extends Listener> {
  readonly #clock: Clock;
  readonly #openSockets: () => Promise<ListeningSockets | undefined>;
  #current: L;
  /** Those that listen, in the order of the system's own table: who goes leaves its place to the last. */
  readonly #listening: L[];
  /** Those that have requests to answer, or may get some. */
  readonly #open: Set<L>;
  readonly #timers = new Set<() => void>();
  #isStopping = false;

  constructor(first: L, { clock, openSockets }: ListenersOptions) {
    this.#clock = clock;
    this.#openSockets = openSockets;
    this.#current = first;
    this.#listening = [first];
    this.#open = new Set(this.#listening);
  }

  /**
   * Puts the listener that `open` makes in the place of the current one. No connection is lost by it,
   * except where the system can't tell which of two listeners gets a new one (gVisor, for one): there
   * the old one closes at once.
   *
   * @throws ServiceError `unavailable` where the system lets no two listeners share an address, and
   * whatever `open` throws; then the current one goes on
   */
  async replace(open: () => L): Promise<void> {
    const sockets = await this.#openSockets();
    if (this.#isStopping) return;
    if (sockets === undefined || !sockets.share()) {
      throw new ServiceError(
        "unavailable",
        "this system lets no two listeners share an address; restart the service",
      );
    }
    const before = this.#current;
    this.#current = open();
    this.#listening.push(this.#current);
    this.#open.add(this.#current);
    before.retire();
    const close = () => {
      this.#close(before);
      this.#direct(sockets);
    };
    if (!this.#direct(sockets)) {
      close();
      return;
    }
    const cancel = this.#clock.after(limits.retiredListenerMs, () => {
      this.#timers.delete(cancel);
      close();
    });
    this.#timers.add(cancel);
  }

  /** {@link Listener.stop} of all of them. */
  async stop(isForced = false): Promise<void> {
    this.#isStopping = true;
    for (const cancel of this.#timers) cancel();
    await Promise.all([...this.#open].map((listener) => listener.stop(isForced)));
  }

  #close(listener: L): void {
    const last = this.#listening.pop();
    const at = this.#listening.indexOf(listener);
    if (last !== undefined && at >= 0) this.#listening[at] = last;
    void listener.stop().then(() => this.#open.delete(listener));
  }

  #direct(sockets: ListeningSockets): boolean {
    return sockets.direct(this.#listening.indexOf(this.#current));
  }
}
