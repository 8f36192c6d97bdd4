/** A place in the file, and where in memory the kernel maps it. */
export interface Place {
  readonly offset: number;
  readonly address: number;
}

/**
 * What is appended to a program. All of it has the same distance between file and memory, a multiple
 * of the alignment, so that any part of it can be mapped.
 */
export class Tail {
  readonly #start: Place;
  readonly #parts: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  #end: number;

  /** @param start where it begins, aligned, behind everything in the file and in memory */
  constructor(start: Place) {
    this.#start = start;
    this.#end = start.offset;
  }

  /** The offset behind the last part. */
  get end(): number {
    return this.#end;
  }

  /** Where the next part with this alignment goes. */
  next(align: number): Place {
    return this.#at(roundUp(this.#end, align));
  }

  append(bytes: Uint8Array, align: number): Place {
    const place = this.next(align);
    this.#parts.push({ offset: place.offset, bytes });
    this.#end = place.offset + bytes.length;
    return place;
  }

  /** Leaves room up to `offset`. */
  skipTo(offset: number): void {
    this.#end = Math.max(this.#end, offset);
  }

  /** The program with all parts behind it. */
  appendedTo(program: Uint8Array): Uint8Array {
    const bytes = new Uint8Array(this.#end);
    bytes.set(program);
    for (const part of this.#parts) bytes.set(part.bytes, part.offset);
    return bytes;
  }

  #at(offset: number): Place {
    return { offset, address: offset - this.#start.offset + this.#start.address };
  }
}

export function roundUp(value: number, align: number): number {
  return Math.ceil(value / align) * align;
}
