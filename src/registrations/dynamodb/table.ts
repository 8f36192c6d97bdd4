import type { Decoded, Item, Renewal } from "./item.ts";

/**
 * What went wrong with the table, in the kinds that matter to whoever reads the answer:
 *
 * - `throttled`: DynamoDB asks for fewer requests
 * - `timeout`: no answer came in time
 * - `denied`: AWS refuses the credentials, or what they may do
 * - `error`: anything else
 */
export type TableFault = "throttled" | "timeout" | "denied" | "error";

export class TableError extends Error {
  readonly fault: TableFault;
  /** Whether trying again can't help until somebody mends the settings or the table. */
  readonly isDefinite: boolean;
  /** Whether the credentials themselves are at fault, not what they allow. */
  readonly isIdentity: boolean;

  constructor(fault: TableFault, message: string, { isDefinite = false, isIdentity = false } = {}) {
    super(message);
    this.fault = fault;
    this.isDefinite = isDefinite;
    this.isIdentity = isIdentity;
  }
}

export interface Write {
  readonly id: string;
  readonly text: string;
  readonly renewal: Renewal;
  /** What to do about the text of an item that is there already. */
  readonly present: "replaced" | "kept";
  /**
   * Whether the renewal is of too long ago to be sent. To be asked before each attempt: a process that
   * was stopped and goes on must not put an old renewal over one that another replica wrote meanwhile.
   */
  readonly isLate: () => boolean;
}

/** The table that registrations are kept in. Every method rejects with a {@link TableError}. */
export interface RegistrationTable {
  /**
   * Looks whether the table is there and fit for its use, and whether there are credentials.
   *
   * @returns what is odd but does no harm
   */
  check(signal: AbortSignal): Promise<string[]>;

  /**
   * Every item, page by page, each page as of no earlier than the call. Not to be called while it is
   * under way.
   */
  pages(signal: AbortSignal): AsyncIterable<readonly Decoded[]>;

  /**
   * Writes an item, whatever was there. A registration that is `kept` leaves the text of an item that
   * has one as it is.
   *
   * @returns the attributes that were there, none where the item is new
   */
  write(write: Write, signal: AbortSignal): Promise<Item>;

  /** Drops the connections. */
  close(): void;
}
