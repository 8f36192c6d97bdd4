/**
 * From a program that is linked with glibc to one that brings it along. docs/design.md says why it is
 * done in this way ("One file for an empty file system").
 */
import { type Dynamic, Elf, type Reference } from "./elf.ts";
import { PF, PT, SEGMENT_BYTES, type Segment, SHF } from "./elf-format.ts";
import { ElfWriter } from "./elf-writer.ts";
import { checkProgram, checkRuntime, type Runtime } from "./inputs.ts";
import { SectionTable } from "./section-table.ts";
import { PATH_BYTES, type Stub, type StubLayout } from "./stub.ts";
import { type Place, roundUp, Tail } from "./tail.ts";

/**
 * Makes the file. It differs from the program in this: the kernel is told of more segments, and of
 * no dynamic loader that it should look for; it starts the stub; and the strings of the dynamic
 * section are where the stub can write the paths of the libraries.
 *
 * @param bytes what `bun build --compile` made
 * @param buildStub makes the stub for where everything lies
 * @param notice whose work is in it; for people, who take it out by `objcopy`, compressed
 * @throws PackagingError where an input is not what this is made for
 */
export async function makeStandalone(
  bytes: Uint8Array,
  runtime: Runtime,
  buildStub: (layout: StubLayout) => Promise<Stub>,
  notice: string,
): Promise<Uint8Array> {
  const program = new Elf(bytes, "the program");
  const { dynamic, headersAddress } = checkProgram(program);
  checkRuntime(program, runtime);
  const loader = new Elf(runtime.loader.bytes, runtime.loader.name);
  const align = Math.max(...[...program.loads, ...loader.loads].map((load) => load.align));
  const tail = new Tail({
    offset: roundUp(bytes.length, align),
    address: roundUp(endOf(program.loads), align),
  });

  // On pages of their own: they are only read, and then given back.
  const libraries = runtime.libraries.map((library, n) => ({
    ...library,
    ...tail.append(library.bytes, n === 0 ? align : 16),
  }));
  const librariesEnd = tail.end;

  const moved = movedStrings(dynamic, runtime);
  // One asks for a loader and falls away; the libraries, the strings and the stub take one each.
  const segmentCount = program.segments.length - 1 + loader.loads.length + 3;
  const headers = tail.append(new Uint8Array(segmentCount * SEGMENT_BYTES), align);
  const strings = tail.append(moved.bytes, 16);
  const stringsEnd = tail.end;

  const loaderFile = tail.append(runtime.loader.bytes, align);
  tail.skipTo(loaderFile.offset + endOf(loader.loads));

  const stub = await buildStub({
    machine: program.machine,
    stubAddress: tail.next(align).address,
    program: {
      entry: program.entry,
      headers: headersAddress,
      headerCount: program.segments.length,
    },
    loader: { base: loaderFile.address, entry: loaderFile.address + loader.entry },
    written: { address: headers.address, size: stringsEnd - headers.offset },
    libraries: libraries.map(({ name, address, bytes: { length } }, n) => ({
      name,
      address,
      size: length,
      pathAddress: strings.address + moved.pathsAt + n * PATH_BYTES,
    })),
  });
  const code = tail.append(stub.code, align);

  const segments = withLoads(program.segments, headers, [
    load(PF.R, libraries[0] ?? headers, librariesEnd, align),
    load(PF.R | PF.W, headers, stringsEnd, align),
    ...loader.loads.map((segment) => ({
      ...segment,
      offset: loaderFile.offset + segment.offset,
      address: loaderFile.address + segment.address,
    })),
    load(PF.R | PF.X, code, tail.end, align),
  ]);

  // The kernel needs no sections. People do, to see what is in the file, or to take it out.
  const sections = new SectionTable(program);
  sections.change(".dynstr", {
    ...strings,
    size: moved.bytes.length,
    flags: SHF.ALLOC | SHF.WRITE,
  });
  for (const object of [...libraries, { ...runtime.loader, ...loaderFile }]) {
    sections.add(`.embedded.${object.name}`, SHF.ALLOC, object, object.bytes.length);
  }
  sections.add(".stub", SHF.ALLOC | SHF.EXECINSTR, code, stub.code.length);
  const text = Bun.gzipSync(notice, { level: 9 });
  sections.add(".notice.gz", 0, { ...tail.append(text, 1), address: 0 }, text.length);
  const names = tail.append(sections.names, 1);
  const sectionHeaders = tail.append(new Uint8Array(sections.byteLength), 8);

  const file = tail.appendedTo(bytes);
  const writer = new ElfWriter(file);
  writer.header({
    entry: stub.entry,
    segments: { offset: headers.offset, count: segments.length },
    sections: { offset: sectionHeaders.offset, count: sections.count },
  });
  writer.segments(headers.offset, segments);
  writer.sections(sectionHeaders.offset, sections.withNamesAt(names.offset));
  writer.u64(dynamic.stringsAt, strings.address);
  writer.u64(dynamic.stringsSizeAt, moved.bytes.length);
  for (const [n, library] of libraries.entries()) {
    const path = moved.pathsAt + n * PATH_BYTES;
    const isThis = ({ name }: Reference) => name === library.name;
    for (const { at } of dynamic.needed.filter(isThis)) writer.u64(at, path);
    for (const { at } of dynamic.versionFiles.filter(isThis)) writer.u32(at, path);
  }
  return file;
}

/**
 * The dynamic strings with a place for each library's path behind them. Until the stub writes the
 * paths, the names are there, so that tools see what they would see of the program.
 */
function movedStrings(
  { strings }: Dynamic,
  { libraries }: Runtime,
): { readonly bytes: Uint8Array; readonly pathsAt: number } {
  const bytes = new Uint8Array(strings.length + libraries.length * PATH_BYTES);
  bytes.set(strings);
  for (const [n, { name }] of libraries.entries()) {
    bytes.set(Buffer.from(name), strings.length + n * PATH_BYTES);
  }
  return { bytes, pathsAt: strings.length };
}

function load(flags: number, { offset, address }: Place, end: number, align: number): Segment {
  const size = end - offset;
  return { type: PT.LOAD, flags, offset, address, fileSize: size, memorySize: size, align };
}

/** The program's headers for the kernel: no loader is asked for, and `loads` are mapped as well. */
function withLoads(
  segments: readonly Segment[],
  headers: Place,
  loads: readonly Segment[],
): Segment[] {
  const kept = segments.filter(({ type }) => type !== PT.INTERP);
  const size = (kept.length + loads.length) * SEGMENT_BYTES;
  const all = kept.map((segment) =>
    segment.type === PT.PHDR
      ? { ...segment, ...headers, fileSize: size, memorySize: size }
      : segment,
  );
  // They have to ascend.
  const behind = all.findLastIndex(({ type }) => type === PT.LOAD) + 1;
  return all.toSpliced(behind, 0, ...loads);
}

function endOf(loads: readonly Segment[]): number {
  return Math.max(...loads.map(({ address, memorySize }) => address + memorySize));
}
