/**
 * An EndpointSlice (discovery.k8s.io/v1), as much of it as is read here. The API server has checked
 * its form; what it leaves out or sends as null may be either here.
 */
export interface EndpointSlice {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>> | null;
    readonly annotations?: Readonly<Record<string, string>> | null;
  };
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType: string;
  readonly endpoints?: readonly Endpoint[] | null;
  readonly ports?: readonly EndpointPort[] | null;
}

export interface Endpoint {
  /** Only the first has a meaning (KEP-4974). */
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean | null } | null;
  readonly hostname?: string | null;
  readonly targetRef?: { readonly kind?: string | null; readonly name?: string | null } | null;
}

export interface EndpointPort {
  readonly name?: string | null;
  readonly port?: number | null;
  readonly appProtocol?: string | null;
}

/** A page of a list. All pages of one list show the slices as of one resource version. */
export interface SlicePage {
  readonly slices: readonly EndpointSlice[];
  readonly resourceVersion: string;
  /** Asks for the next page; undefined on the last one. */
  readonly continueToken: string | undefined;
}

export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly slice: EndpointSlice }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

/**
 * What went wrong with the API server, in the kinds that matter to whoever asked:
 *
 * - `expired`: the resource version or the continue token is too old (410): list again
 * - `denied`: the API server refuses the credentials, or what they may do (401, 403)
 * - `error`: anything else, such as a refused connection, a 500 or a line that is no JSON
 */
export type ApiFault = "expired" | "denied" | "error";

/** The message says what went wrong, where, and what to mend. */
export class ApiError extends Error {
  readonly fault: ApiFault;

  constructor(fault: ApiFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/**
 * The EndpointSlices of one API server, in all namespaces, that one label selector picks. Whatever
 * rejects, or is thrown while a watch is read, is an {@link ApiError}, but for the signal's own
 * reason once that is aborted.
 */
export interface SliceApi {
  /** One page of at most `limit` slices. There is no time-out but the signal. */
  list(
    query: { readonly limit: number; readonly continueToken: string | undefined },
    signal: AbortSignal,
  ): Promise<SlicePage>;

  /**
   * What changes after a resource version, with bookmarks. Resolves once the API server has taken the
   * watch on; the events end when the server ends the watch, after `timeoutSecs` at the latest. An
   * ERROR event is thrown. Leaving the loop, or the signal, drops the connection.
   */
  watch(
    query: { readonly resourceVersion: string; readonly timeoutSecs: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent>>;
}
