/**
 * ELF files of 64 bits, little-endian: as much of the System V ABI (gABI chapters 4 and 5, and
 * "Symbol versioning" of the Linux Standard Base) as making the standalone file needs.
 */
import {
  HEADER_BYTES,
  PF,
  PT,
  SECTION_BYTES,
  SEGMENT_BYTES,
  type Section,
  type Segment,
  SHT,
} from "./elf-format.ts";
import { PackagingError } from "./errors.ts";

const DT = {
  NULL: 0,
  NEEDED: 1,
  STRTAB: 5,
  STRSZ: 10,
  SONAME: 14,
  VERNEED: 0x6ffffffe,
  VERNEEDNUM: 0x6fffffff,
} as const;

/** The sizes of pages: 4 KiB, 16 KiB and 64 KiB, and the 2 MiB that some linkers align to. */
const ALIGNMENTS = [0x1000, 0x4000, 0x10000, 0x200000];
const USER_SPACE_END = 2 ** 47;

/** What the dynamic loader is told, as strings and as the places in the file that name them. */
export interface Dynamic {
  readonly needed: readonly Reference[];
  readonly soname: string | undefined;
  /** The files of the versions that are needed. */
  readonly versionFiles: readonly Reference[];
  readonly strings: Uint8Array;
  /** Where the file holds the address and the size of the strings, 8 bytes each. */
  readonly stringsAt: number;
  readonly stringsSizeAt: number;
}

/** A name, and where in the file its place in the strings is written. */
export interface Reference {
  readonly name: string;
  readonly at: number;
}

/** An ELF file that has been looked through. Everything in it lies within `bytes`. */
export class Elf {
  readonly bytes: Uint8Array;
  readonly type: number;
  readonly machine: number;
  readonly entry: number;
  readonly segments: readonly Segment[];
  readonly sections: readonly Section[];
  readonly sectionNamesIndex: number;
  /** What the file is called in messages. */
  readonly name: string;
  /** Where the program headers are in the file. */
  readonly segmentsAt: number;
  readonly #view: DataView;

  /** @throws PackagingError where it isn't an ELF file as the ABI has it */
  constructor(bytes: Uint8Array, name: string) {
    this.bytes = bytes;
    this.name = name;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const magic = [0x7f, 0x45, 0x4c, 0x46];
    if (bytes.length < HEADER_BYTES || magic.some((byte, at) => bytes[at] !== byte)) {
      throw this.refusal("is no ELF file");
    }
    if (bytes[4] !== 2 || bytes[5] !== 1 || bytes[6] !== 1) {
      throw this.refusal("is no little-endian ELF file of 64 bits");
    }
    this.type = this.u16(16);
    this.machine = this.u16(18);
    this.entry = this.u64(24);
    this.segmentsAt = this.u64(32);
    this.segments = this.#table("program headers", 32, 54, SEGMENT_BYTES, (at) => ({
      type: this.u32(at),
      flags: this.u32(at + 4),
      offset: this.u64(at + 8),
      address: this.u64(at + 16),
      fileSize: this.u64(at + 32),
      memorySize: this.u64(at + 40),
      align: this.u64(at + 48),
    }));
    this.sections = this.#table("section headers", 40, 58, SECTION_BYTES, (at) => ({
      nameAt: this.u32(at),
      type: this.u32(at + 4),
      flags: this.u64(at + 8),
      address: this.u64(at + 16),
      offset: this.u64(at + 24),
      size: this.u64(at + 32),
      link: this.u32(at + 40),
      info: this.u32(at + 44),
      align: this.u64(at + 48),
      entrySize: this.u64(at + 56),
    }));
    this.sectionNamesIndex = this.u16(62);
    this.#checkSegments();
  }

  /** What the kernel maps, by ascending address. */
  get loads(): readonly Segment[] {
    return this.segments.filter(({ type }) => type === PT.LOAD);
  }

  /** The one segment of this type; undefined where there is none. */
  segment(type: number): Segment | undefined {
    const [first, second] = this.segments.filter((each) => each.type === type);
    if (second !== undefined) throw this.refusal(`has two program headers of type ${type}`);
    return first;
  }

  /** The path of the dynamic loader that the program asks for. */
  get interpreter(): string | undefined {
    const segment = this.segment(PT.INTERP);
    return segment && this.#string(this.contents(segment), 0);
  }

  contents({ offset, fileSize }: Segment): Uint8Array {
    return this.#slice(offset, fileSize);
  }

  /** The names of the sections, as one string table. */
  get sectionNames(): Uint8Array {
    const names = this.sections[this.sectionNamesIndex];
    if (names?.type !== SHT.STRTAB) throw this.refusal("has no table of section names");
    return this.#slice(names.offset, names.size);
  }

  /** The index of the section of this name; -1 where there is none. */
  sectionIndex(name: string): number {
    const names = this.sectionNames;
    return this.sections.findIndex(({ nameAt }) => this.#string(names, nameAt) === name);
  }

  /** Reads the dynamic segment. */
  get dynamic(): Dynamic {
    const segment = this.segment(PT.DYNAMIC);
    if (segment === undefined) throw this.refusal("is not dynamically linked");
    const entries: { tag: number; value: number; at: number }[] = [];
    for (let at = segment.offset; at + 16 <= segment.offset + segment.fileSize; at += 16) {
      const tag = this.u64(at);
      if (tag === DT.NULL) break;
      entries.push({ tag, value: this.u64(at + 8), at: at + 8 });
    }
    const one = (wanted: number) => entries.find(({ tag }) => tag === wanted);
    const [table, size, soname] = [one(DT.STRTAB), one(DT.STRSZ), one(DT.SONAME)];
    if (table === undefined || size === undefined) throw this.refusal("has no dynamic strings");
    const strings = this.#slice(this.#offsetOf(table.value), size.value);
    return {
      needed: entries
        .filter(({ tag }) => tag === DT.NEEDED)
        .map(({ value, at }) => ({ name: this.#string(strings, value), at })),
      soname: soname && this.#string(strings, soname.value),
      versionFiles: this.#versionFiles(
        one(DT.VERNEED)?.value,
        one(DT.VERNEEDNUM)?.value ?? 0,
        strings,
      ),
      strings,
      stringsAt: table.at,
      stringsSizeAt: size.at,
    };
  }

  /** The records of `Elf64_Verneed`, each of which says where the next one is. */
  #versionFiles(address: number | undefined, count: number, strings: Uint8Array): Reference[] {
    const found: Reference[] = [];
    let at = address === undefined ? 0 : this.#offsetOf(address);
    for (let n = 0; address !== undefined && n < count; n++) {
      if (this.u16(at) !== 1) throw this.refusal("needs versions in a form that is not known");
      found.push({ name: this.#string(strings, this.u32(at + 4)), at: at + 4 });
      const next = this.u32(at + 12);
      if (next === 0) break;
      at += next;
    }
    return found;
  }

  #checkSegments(): void {
    if (this.loads.length === 0) throw this.refusal("has nothing to map");
    let end = 0;
    for (const { flags, offset, address, fileSize, memorySize, align } of this.loads) {
      if (fileSize > memorySize) throw this.refusal("has a segment that is larger than its memory");
      this.#slice(offset, fileSize);
      if (address < end) throw this.refusal("has segments that overlap or are out of order");
      end = address + memorySize;
      if (end > USER_SPACE_END) throw this.refusal("has a segment outside of user space");
      if (!ALIGNMENTS.includes(align) || address % align !== offset % align) {
        throw this.refusal("has a segment that is not aligned");
      }
      if (flags & PF.W && flags & PF.X) {
        throw this.refusal("has a segment that is writable and executable at once");
      }
    }
    const starts = this.loads.some(
      ({ flags, address, memorySize }) =>
        flags & PF.X && this.entry >= address && this.entry < address + memorySize,
    );
    if (this.entry !== 0 && !starts) throw this.refusal("has an entry point outside of its code");
  }

  #table<T>(
    what: string,
    offsetAt: number,
    sizesAt: number,
    entryBytes: number,
    read: (at: number) => T,
  ): readonly T[] {
    const [offset, size, count] = [this.u64(offsetAt), this.u16(sizesAt), this.u16(sizesAt + 2)];
    if (count === 0) return [];
    if (size !== entryBytes) throw this.refusal(`has ${what} of a size that is not known`);
    this.#slice(offset, count * size);
    return Array.from({ length: count }, (_, n) => read(offset + n * size));
  }

  /** Where in the file the byte is that is at this address in memory. */
  #offsetOf(address: number): number {
    const segment = this.loads.find(
      (load) => address >= load.address && address < load.address + load.fileSize,
    );
    if (segment === undefined) throw this.refusal("refers to an address that it does not hold");
    return address - segment.address + segment.offset;
  }

  #string(strings: Uint8Array, at: number): string {
    const end = strings.indexOf(0, at);
    if (at >= strings.length || end < 0) throw this.refusal("has a string without an end");
    return Buffer.from(strings.subarray(at, end)).toString("latin1");
  }

  #slice(offset: number, size: number): Uint8Array {
    if (offset + size > this.bytes.length) throw this.refusal("is cut off");
    return this.bytes.subarray(offset, offset + size);
  }

  u16(at: number): number {
    this.#slice(at, 2);
    return this.#view.getUint16(at, true);
  }

  u32(at: number): number {
    this.#slice(at, 4);
    return this.#view.getUint32(at, true);
  }

  /** A number of 64 bits. Addresses and sizes in user space have no more than 48. */
  u64(at: number): number {
    this.#slice(at, 8);
    const value = Number(this.#view.getBigUint64(at, true));
    if (!Number.isSafeInteger(value)) throw this.refusal("has a number out of range");
    return value;
  }

  /** An error that says what is wrong with this file. */
  refusal(problem: string): PackagingError {
    return new PackagingError(`${this.name} ${problem}`);
  }
}
