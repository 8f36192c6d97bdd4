/** What the standalone file is made of, and what has to be true of it. */
import { type Dynamic, Elf } from "./elf.ts";
import { ET, PT } from "./elf-format.ts";
import { PackagingError } from "./errors.ts";

/** A shared object, and the name by which programs ask for it. */
export interface SharedObject {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The dynamic loader and every library that the program needs, all of one glibc. */
export interface Runtime {
  readonly loader: SharedObject;
  readonly libraries: readonly SharedObject[];
}

const LIBC = "libc.so.6";

/** From 2.34 on, libc itself resolves names and has the threads; before, it opened more libraries. */
const LEAST_GLIBC = { major: 2, minor: 34 } as const;

/** What a program asks for at its start. */
export interface Needs {
  /** The file name of the dynamic loader. */
  readonly loader: string;
  /** The libraries, in the program's order, without the loader. */
  readonly libraries: readonly string[];
}

/** @throws PackagingError where it isn't a program that glibc's loader starts */
export function needsOf(program: Elf): Needs {
  const loader = program.interpreter?.split("/").at(-1);
  if (loader === undefined) {
    throw program.refusal("asks for no dynamic loader: it may be standalone already");
  }
  if (!loader.startsWith("ld-linux-")) {
    throw program.refusal(`asks for ${loader}, which is not glibc's: build with a Bun for glibc`);
  }
  const libraries = program.dynamic.needed
    .map(({ name }) => name)
    .filter((name) => name !== loader);
  if (!libraries.includes(LIBC)) throw program.refusal(`does not need ${LIBC}`);
  return { loader, libraries };
}

/**
 * Checks that the program can be started at any other place than its own entry point, by a loader
 * that finds its headers as they are.
 *
 * @returns its dynamic section, and where its program headers are in memory
 */
export function checkProgram(program: Elf): { dynamic: Dynamic; headersAddress: number } {
  if (program.type !== ET.EXEC) {
    throw program.refusal("is position-independent: only one with fixed addresses can be extended");
  }
  const headers = program.segment(PT.PHDR);
  const holder = program.loads.find(
    ({ address, memorySize }) =>
      headers !== undefined &&
      headers.address >= address &&
      headers.address + headers.memorySize <= address + memorySize,
  );
  if (headers === undefined || holder === undefined) {
    throw program.refusal("does not have its program headers in memory");
  }
  const inFile = headers.address - holder.address + holder.offset;
  if (headers.offset !== program.segmentsAt || inFile !== headers.offset) {
    throw program.refusal("has its program headers in another place than it says");
  }
  return { dynamic: program.dynamic, headersAddress: headers.address };
}

/** Checks that the runtime is what the program needs, complete and of one glibc that is new enough. */
export function checkRuntime(program: Elf, runtime: Runtime): void {
  const { loader, libraries } = needsOf(program);
  const given = runtime.libraries.map(({ name }) => name);
  if (runtime.loader.name !== loader || given.join() !== libraries.join()) {
    throw program.refusal(
      `needs ${[loader, ...libraries].join(", ")}, not ${[runtime.loader.name, ...given].join(", ")}`,
    );
  }
  const known = [loader, ...libraries];
  for (const { name } of program.dynamic.versionFiles) {
    if (!known.includes(name)) throw program.refusal(`needs versions of ${name}, but not ${name}`);
  }
  checkLoader(new Elf(runtime.loader.bytes, loader));
  for (const { name, bytes } of [runtime.loader, ...runtime.libraries]) {
    const object = new Elf(bytes, name);
    if (object.type !== ET.DYN) throw object.refusal("is no shared object");
    if (object.machine !== program.machine) {
      throw object.refusal("is for another machine than the program");
    }
    const { soname, needed } = object.dynamic;
    if (soname !== name) throw object.refusal(`calls itself ${soname ?? "nothing"}`);
    for (const other of needed) {
      if (!known.includes(other.name)) {
        throw object.refusal(`needs ${other.name}, which the program does not`);
      }
    }
  }
  checkGlibc(runtime);
}

/** The loader finds its own headers at its base, and its file and its memory go together. */
function checkLoader(loader: Elf): void {
  const [first, last] = [loader.loads[0], loader.loads.at(-1)];
  if (first?.offset !== 0 || first.address !== 0) {
    throw loader.refusal("does not begin with its header in memory");
  }
  if (last !== undefined && last.address + last.memorySize > loader.bytes.length + 0x100000) {
    throw loader.refusal("takes far more memory than its file");
  }
}

/** The loader and libc only work with each other, and say of which glibc they are. */
function checkGlibc(runtime: Runtime): void {
  const libc = runtime.libraries.find(({ name }) => name === LIBC)?.bytes ?? new Uint8Array();
  const [ofLibc, ofLoader] = [glibcOf(libc), glibcOf(runtime.loader.bytes)];
  if (ofLibc === undefined) throw new PackagingError(`${LIBC} does not say which glibc it is of`);
  const [major = 0, minor = 0] = ofLibc.version.split(".").map(Number);
  if (major < LEAST_GLIBC.major || (major === LEAST_GLIBC.major && minor < LEAST_GLIBC.minor)) {
    throw new PackagingError(
      `${LIBC} is of glibc ${ofLibc.version}: build on a system with ` +
        `${LEAST_GLIBC.major}.${LEAST_GLIBC.minor} or later (Debian 12, Ubuntu 22.04), or with --dynamic`,
    );
  }
  if (ofLoader?.build !== ofLibc.build) {
    throw new PackagingError(
      `${runtime.loader.name} is of ${ofLoader?.build ?? "an unknown glibc"}, ` +
        `and ${LIBC} of ${ofLibc.build}: they have to be of one`,
    );
  }
}

/**
 * Which glibc a file is of, from what it prints when it is run: `GNU C Library (Debian GLIBC
 * 2.36-9+deb12u14) stable release version 2.36.`
 */
export function glibcOf(bytes: Uint8Array): { build: string; version: string } | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const banner = /(?:GNU C Library|ld\.so) \(([^)\n]+)\) \w+ release version (\d+\.\d+)/.exec(text);
  const [, build, version] = banner ?? [];
  return build === undefined || version === undefined ? undefined : { build, version };
}
