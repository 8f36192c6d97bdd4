/** What became of registrations and of pools since the start. */
export interface RegistrationCounts {
  /** Of a pool that was not live. */
  readonly added: number;
  /** The same as the live one. */
  readonly renewed: number;
  /** Other than the live one. */
  readonly changed: number;
  /** For want of room. */
  readonly refused: number;
  /** Because the table did not take them. */
  readonly failed: number;
  /** Pools whose lease ended. */
  readonly expired: number;
  /** Registrations that differed from what another relay of the pool had sent. */
  readonly disagreements: number;
}

/** Counts that start at zero, for a store to add to. */
export function newCounts(): { -readonly [Name in keyof RegistrationCounts]: number } {
  return {
    added: 0,
    renewed: 0,
    changed: 0,
    refused: 0,
    failed: 0,
    expired: 0,
    disagreements: 0,
  };
}
