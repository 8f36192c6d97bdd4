import { SECTION_BYTES, SEGMENT_BYTES, type Section, type Segment } from "./elf-format.ts";

/** Writes into an ELF file of 64 bits, little-endian. */
export class ElfWriter {
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Sets the entry point, and where the two tables are and how long. */
  header({
    entry,
    segments,
    sections,
  }: {
    readonly entry: number;
    readonly segments: { readonly offset: number; readonly count: number };
    readonly sections: { readonly offset: number; readonly count: number };
  }): void {
    this.u64(24, entry);
    this.u64(32, segments.offset);
    this.u64(40, sections.offset);
    this.#u16(56, segments.count);
    this.#u16(60, sections.count);
  }

  segments(offset: number, segments: readonly Segment[]): void {
    for (const [n, segment] of segments.entries()) {
      const at = offset + n * SEGMENT_BYTES;
      this.u32(at, segment.type);
      this.u32(at + 4, segment.flags);
      this.u64(at + 8, segment.offset);
      this.u64(at + 16, segment.address);
      // The physical address, which means nothing here.
      this.u64(at + 24, segment.address);
      this.u64(at + 32, segment.fileSize);
      this.u64(at + 40, segment.memorySize);
      this.u64(at + 48, segment.align);
    }
  }

  sections(offset: number, sections: readonly Section[]): void {
    for (const [n, section] of sections.entries()) {
      const at = offset + n * SECTION_BYTES;
      this.u32(at, section.nameAt);
      this.u32(at + 4, section.type);
      this.u64(at + 8, section.flags);
      this.u64(at + 16, section.address);
      this.u64(at + 24, section.offset);
      this.u64(at + 32, section.size);
      this.u32(at + 40, section.link);
      this.u32(at + 44, section.info);
      this.u64(at + 48, section.align);
      this.u64(at + 56, section.entrySize);
    }
  }

  u32(at: number, value: number): void {
    this.#view.setUint32(at, value, true);
  }

  u64(at: number, value: number): void {
    this.#view.setBigUint64(at, BigInt(value), true);
  }

  #u16(at: number, value: number): void {
    this.#view.setUint16(at, value, true);
  }
}
