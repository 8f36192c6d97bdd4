import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outputOf } from "./command.ts";
import { Elf } from "./elf.ts";
import { PF } from "./elf-format.ts";
import { PackagingError } from "./errors.ts";

/** `/proc/`, a process, `/fd/`, a descriptor and the 0 at the end, with ten digits for a number. */
export const PATH_BYTES = 32;

/** Where everything lies in memory. Sizes are in bytes. */
export interface StubLayout {
  /** The machine of the program, as ELF numbers it. */
  readonly machine: number;
  readonly stubAddress: number;
  readonly program: {
    readonly entry: number;
    readonly headers: number;
    readonly headerCount: number;
  };
  readonly loader: { readonly base: number; readonly entry: number };
  /** What is written to by the stub, and by nobody later. */
  readonly written: { readonly address: number; readonly size: number };
  /** One behind the other; each with the place for the path of its file, of PATH_BYTES. */
  readonly libraries: readonly {
    readonly name: string;
    readonly address: number;
    readonly size: number;
    readonly pathAddress: number;
  }[];
}

/** The code that is to be in memory from `stubAddress` on. */
export interface Stub {
  readonly code: Uint8Array;
  readonly entry: number;
}

const SWITCHES = [
  "-std=gnu11",
  "-O2",
  "-Wall",
  "-Wextra",
  "-static",
  "-nostdlib",
  "-ffreestanding",
  // Nothing of this is there yet: addresses that move, a stack protector's secret, a `memset`.
  "-fno-pie",
  "-no-pie",
  "-fno-stack-protector",
  "-fno-builtin",
  "-fno-tree-loop-distribute-patterns",
  "-fno-asynchronous-unwind-tables",
  "-Wl,--build-id=none",
];

/**
 * Compiles `loader.c` for a layout.
 *
 * @param cc the C compiler for the program's machine
 * @throws PackagingError where it can't be compiled, or isn't one segment of code
 */
export async function buildStub(cc: string, layout: StubLayout): Promise<Stub> {
  const folder = await mkdtemp(join(tmpdir(), "standalone-"));
  try {
    await Bun.write(join(folder, "layout.h"), layoutHeader(layout));
    const outfile = join(folder, "stub");
    await outputOf([
      cc,
      ...SWITCHES,
      `-I${folder}`,
      `-Wl,--defsym=STUB_ADDRESS=${layout.stubAddress}`,
      `-Wl,-T,${join(import.meta.dir, "loader.ld")}`,
      ...["-o", outfile],
      join(import.meta.dir, "loader.c"),
    ]);
    return codeOf(new Elf(await Bun.file(outfile).bytes(), "the stub"), layout);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function codeOf(stub: Elf, { machine, stubAddress }: StubLayout): Stub {
  if (stub.machine !== machine) throw stub.refusal("is for another machine than the program");
  const [code, ...others] = stub.loads;
  if (code === undefined || others.length > 0 || code.flags !== (PF.R | PF.X)) {
    throw stub.refusal("is more than one segment of code");
  }
  if (code.address !== stubAddress || code.fileSize !== code.memorySize) {
    throw stub.refusal("is not where it should be in memory");
  }
  return { code: stub.contents(code), entry: stub.entry };
}

function layoutHeader({ program, loader, written, libraries }: StubLayout): string {
  const [first, last] = [libraries[0], libraries.at(-1)];
  if (first === undefined || last === undefined) throw new PackagingError("there are no libraries");
  const values = {
    PROGRAM_ENTRY: program.entry,
    PROGRAM_HEADERS: program.headers,
    PROGRAM_HEADER_COUNT: program.headerCount,
    LOADER_BASE: loader.base,
    LOADER_ENTRY: loader.entry,
    WRITTEN_START: written.address,
    WRITTEN_SIZE: written.size,
    LIBRARIES_START: first.address,
    LIBRARIES_SIZE: last.address + last.size - first.address,
  };
  const rows = libraries.map(({ name, address, size, pathAddress }) => {
    const pointers = [`(const unsigned char *)${hex(address)}`, hex(size)];
    return `  {${[JSON.stringify(name), ...pointers, `(char *)${hex(pathAddress)}`].join(", ")}},`;
  });
  return [
    ...Object.entries(values).map(([name, value]) => `#define ${name} ${hex(value)}`),
    `#define LIBRARIES \\\n${rows.join(" \\\n")}`,
    "",
  ].join("\n");
}

function hex(value: number): string {
  return `0x${value.toString(16)}UL`;
}
