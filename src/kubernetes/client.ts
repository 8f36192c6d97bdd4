import { version } from "../../package.json" with { type: "json" };
import type { Cancel, Clock } from "../runtime/clock.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";
import { ApiFaults, type Verb } from "./api-faults.ts";
import { type ApiServer, type Env, findApiServer } from "./api-server.ts";
import { BodyReader } from "./body-reader.ts";
import { Credentials, type Identity } from "./credentials.ts";
import { eventOf, pageOf } from "./decode.ts";
import { LineSplitter } from "./lines.ts";
import type { SliceApi, SlicePage, WatchEvent } from "./slice-api.ts";

export interface SliceApiOptions {
  /** Which slices are asked for, as kubectl's `--selector`. */
  readonly labelSelector: string;
  readonly env: Env;
  readonly clock: Clock;
  readonly log: Log;
  /** In place of the folder where Kubernetes puts a pod's token and CA. */
  readonly serviceAccountFolder?: string;
}

/**
 * Makes the slices of the API server that `KUBECONFIG`, the pod or `~/.kube/config` names. Asks it
 * nothing yet.
 *
 * @throws ServiceError `startup` where none is named, or the settings can't be used
 */
export async function openSliceApi(options: SliceApiOptions): Promise<SliceApi> {
  const server = findApiServer(options.env, options.serviceAccountFolder);
  const credentials = new Credentials(server, options);
  await credentials.check();
  return new HttpSliceApi(server, credentials, options);
}

const PATH = "/apis/discovery.k8s.io/v1/endpointslices";

class HttpSliceApi implements SliceApi {
  readonly #server: ApiServer;
  readonly #credentials: Credentials;
  readonly #faults: ApiFaults;
  readonly #labelSelector: string;
  readonly #clock: Clock;

  constructor(
    server: ApiServer,
    credentials: Credentials,
    { labelSelector, clock }: Pick<SliceApiOptions, "labelSelector" | "clock">,
  ) {
    this.#server = server;
    this.#credentials = credentials;
    this.#faults = new ApiFaults(server, credentials);
    this.#labelSelector = labelSelector;
    this.#clock = clock;
  }

  async list(
    {
      limit,
      continueToken,
    }: { readonly limit: number; readonly continueToken: string | undefined },
    signal: AbortSignal,
  ): Promise<SlicePage> {
    // Without a resourceVersion the first page shows nothing older than the request.
    const query = { limit, ...(continueToken === undefined ? {} : { continue: continueToken }) };
    const { body } = await this.#get("list", query, signal);
    const { text, isCut } = await this.#reading("list", body.text(limits.slicePageBytes), signal);
    if (isCut) throw this.#faults.ofContent("list", "the page is too large");
    return this.#decode("list", () => pageOf(text));
  }

  async watch(
    {
      resourceVersion,
      timeoutSecs,
    }: { readonly resourceVersion: string; readonly timeoutSecs: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent>> {
    const query = {
      watch: 1,
      allowWatchBookmarks: true,
      resourceVersion,
      timeoutSeconds: timeoutSecs,
    };
    const { body, identity } = await this.#get("watch", query, signal);
    return this.#events(body, identity, signal);
  }

  async *#events(
    body: BodyReader,
    identity: Identity,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    const stopLooking = this.#stopOnceRotated(body, identity);
    const lines = new LineSplitter(limits.watchLineBytes);
    try {
      for (;;) {
        const piece = await this.#reading("watch", body.read(), signal);
        if (piece === undefined) break;
        for (const line of this.#decode("watch", () => [...lines.push(piece)])) {
          signal.throwIfAborted();
          if (line !== "") yield this.#eventOf(line);
        }
      }
      const rest = lines.take();
      if (rest !== "" && !body.isStopped) yield this.#eventOf(rest);
    } finally {
      stopLooking();
      body.stop();
    }
  }

  /**
   * Ends a watch whose token has rotated, so that the new one is in use without waiting for the
   * watch's time-out.
   */
  #stopOnceRotated(body: BodyReader, identity: Identity): Cancel {
    return this.#clock.every(limits.credentialsMs, async () => {
      if (await this.#credentials.hasRotated(identity)) body.stop();
    });
  }

  #eventOf(line: string): WatchEvent {
    const event = this.#decode("watch", () => eventOf(line));
    if (event.type !== "ERROR") return event;
    throw this.#faults.ofEvent("watch", event.status);
  }

  /** Asks for slices. Resolves once the API server says that it has them. */
  async #get(
    verb: Verb,
    query: Readonly<Record<string, string | number | boolean>>,
    signal: AbortSignal,
  ): Promise<{ readonly body: BodyReader; readonly identity: Identity }> {
    const identity = await this.#credentials.identity(signal);
    const search = new URLSearchParams({ labelSelector: this.#labelSelector });
    for (const [name, value] of Object.entries(query)) search.set(name, String(value));
    const url = `${this.#server.url}${PATH}?${search}`;
    const response = await this.#fetch(verb, url, identity, signal);
    const body = new BodyReader(response, signal);
    if (response.status === 200) return { body, identity };
    const { text } = await this.#reading(verb, body.text(limits.apiErrorBytes), signal);
    if (response.status === 401) this.#credentials.expire();
    throw this.#faults.ofResponse(verb, response.status, response.headers.get("location"), text);
  }

  async #fetch(
    verb: Verb,
    url: string,
    identity: Identity,
    signal: AbortSignal,
  ): Promise<Response> {
    const { serverName, proxyUrl } = this.#server;
    const { ca, certificate } = identity;
    // Only until there is an answer: how its body ends is up to who reads it.
    const connecting = new AbortController();
    const abort = () => connecting.abort(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", abort, { once: true });
    try {
      return await fetch(url, {
        headers: {
          ...identity.headers,
          Accept: "application/json",
          "User-Agent": `global-discovery-service/${version}`,
        },
        tls: {
          // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
          rejectUnauthorized: true,
          ...(ca === undefined ? {} : { ca }),
          ...(serverName === undefined ? {} : { serverName }),
          ...certificate,
        },
        // The proxies of the environment are for other traffic.
        proxy: proxyUrl === undefined ? false : { url: proxyUrl, respectNoProxy: false },
        redirect: "manual",
        // Bun's own would cut a watch in which nothing happens.
        timeout: false,
        signal: connecting.signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw this.#faults.ofConnection(verb, error);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  async #reading<T>(verb: Verb, piece: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await piece;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#faults.ofBody(verb, error);
    }
  }

  #decode<T>(verb: Verb, action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw this.#faults.ofContent(verb, error);
    }
  }
}
