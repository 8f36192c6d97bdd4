/** The parts of ELF files of 64 bits (System V ABI, gABI chapters 4 and 5). */

export const HEADER_BYTES = 64;
export const SEGMENT_BYTES = 56;
export const SECTION_BYTES = 64;

export const ET = { EXEC: 2, DYN: 3 } as const;
export const PT = { LOAD: 1, DYNAMIC: 2, INTERP: 3, PHDR: 6 } as const;
export const PF = { X: 1, W: 2, R: 4 } as const;
export const SHT = { PROGBITS: 1, STRTAB: 3 } as const;
export const SHF = { WRITE: 1, ALLOC: 2, EXECINSTR: 4 } as const;
/** A program header. `offset` and `fileSize` are in the file, `address` and `memorySize` in memory. */
export interface Segment {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly fileSize: number;
  readonly memorySize: number;
  readonly align: number;
}

export interface Section {
  /** Where its name is in the section of names. */
  readonly nameAt: number;
  readonly type: number;
  readonly flags: number;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
  readonly info: number;
  readonly align: number;
  readonly entrySize: number;
}
