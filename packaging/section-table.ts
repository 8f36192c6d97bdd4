import type { Elf } from "./elf.ts";
import { SECTION_BYTES, type Section, SHT } from "./elf-format.ts";
import type { Place } from "./tail.ts";

/** The sections of a program, some changed and some added, and their names. */
export class SectionTable {
  readonly #program: Elf;
  readonly #sections: Section[];
  #names: Buffer;

  constructor(program: Elf) {
    this.#program = program;
    this.#sections = [...program.sections];
    this.#names = Buffer.from(program.sectionNames);
  }

  get count(): number {
    return this.#sections.length;
  }

  get byteLength(): number {
    return this.count * SECTION_BYTES;
  }

  get names(): Uint8Array {
    return this.#names;
  }

  /** @throws PackagingError where the program has no section of this name */
  change(name: string, changes: Partial<Section>): void {
    const index = this.#program.sectionIndex(name);
    const section = this.#sections[index];
    if (section === undefined) throw this.#program.refusal(`has no section ${name}`);
    this.#sections[index] = { ...section, ...changes };
  }

  add(name: string, flags: number, { offset, address }: Place, size: number): void {
    const nameAt = this.#names.length;
    this.#names = Buffer.concat([this.#names, Buffer.from(`${name}\0`)]);
    const rest = { type: SHT.PROGBITS, link: 0, info: 0, align: 1, entrySize: 0 };
    this.#sections.push({ nameAt, flags, offset, address, size, ...rest });
  }

  /** The sections, where their names are at `offset` of the file. */
  withNamesAt(offset: number): readonly Section[] {
    return this.#sections.map((section, index) =>
      index === this.#program.sectionNamesIndex
        ? { ...section, offset, size: this.#names.length }
        : section,
    );
  }
}
