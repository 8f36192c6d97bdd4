import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Elf } from "../../packaging/elf.ts";
import { PF, PT, SEGMENT_BYTES, type Segment } from "../../packaging/elf-format.ts";
import { ElfWriter } from "../../packaging/elf-writer.ts";
import { PackagingError } from "../../packaging/errors.ts";
import type { Runtime, SharedObject } from "../../packaging/inputs.ts";
import { makeStandalone } from "../../packaging/standalone.ts";
import { canMakeStandalone, Workshop } from "../support/standalone.ts";

/** What the file is made of. A test changes something and returns what is to be used. */
interface Inputs {
  program: Uint8Array;
  runtime: Runtime;
}

// The offsets of the ELF header (gABI, figure 4-3).
const [CLASS, DATA, TYPE, MACHINE, ENTRY, PHENTSIZE, SHNUM] = [4, 5, 16, 18, 24, 54, 60] as const;

const noStub = async () => ({ code: new Uint8Array(16), entry: 0 });

describe.skipIf(!canMakeStandalone)("making a standalone file is refused, and why is said", () => {
  const workshop = new Workshop();
  let program: Uint8Array;
  let runtime: Runtime;
  let independent: Uint8Array;

  beforeAll(async () => {
    const path = await workshop.compiled("probe.c", "-lm");
    program = await Bun.file(path).bytes();
    runtime = await workshop.runtimeOf(path);
    independent = await Bun.file(await workshop.compiled("probe.c", "-lm", "-pie")).bytes();
  });
  afterAll(() => workshop[Symbol.dispose]());

  /** What is said of inputs that `change` has been at, in a copy. */
  async function refusalOf(change: (inputs: Inputs) => Partial<Inputs>): Promise<string> {
    const copy = ({ name, bytes }: SharedObject) => ({ name, bytes: bytes.slice() });
    const inputs = {
      program: program.slice(),
      runtime: { loader: copy(runtime.loader), libraries: runtime.libraries.map(copy) },
    };
    const changed = { ...inputs, ...change(inputs) };
    try {
      await makeStandalone(changed.program, changed.runtime, noStub, "");
    } catch (error) {
      if (error instanceof PackagingError) return error.message;
      throw error;
    }
    return "nothing";
  }

  test("but not what is as it should be", async () => {
    expect(await refusalOf(() => ({}))).toBe("nothing");
  });

  const byte = (at: number, value: number) => (bytes: Uint8Array) => {
    bytes[at] = value;
  };
  /** Changes the first segment of a type. */
  const segment = (type: number, change: (old: Segment) => Partial<Segment>) => {
    return (bytes: Uint8Array) => {
      const { segments, segmentsAt } = new Elf(bytes, "the program");
      const index = segments.findIndex((each) => each.type === type);
      const old = segments[index];
      if (old === undefined) throw new Error(`there is no segment of type ${type}`);
      const at = segmentsAt + index * SEGMENT_BYTES;
      new ElfWriter(bytes).segments(at, [{ ...old, ...change(old) }]);
    };
  };
  /** Writes over the first place where `old` is; what is shorter ends with a 0. */
  const text = (old: string, now: string) => (bytes: Uint8Array) => {
    const at = Buffer.from(bytes.buffer).indexOf(old);
    if (at < 0) throw new Error(`${old} is not in it`);
    bytes.set(Buffer.from(now.padEnd(old.length, "\0")), at);
  };

  const programs: [string, (bytes: Uint8Array) => unknown, string][] = [
    ["text", (bytes) => bytes.fill(0x20), "the program is no ELF file"],
    ["of 32 bits", byte(CLASS, 1), "the program is no little-endian ELF file of 64 bits"],
    ["big-endian", byte(DATA, 2), "the program is no little-endian ELF file of 64 bits"],
    ["with larger headers", byte(PHENTSIZE, 64), "has program headers of a size that is not known"],
    ["without sections", byte(SHNUM, 0), "has no table of section names"],
    ["that starts outside of its code", byte(ENTRY + 3, 7), "has an entry point outside"],
    [
      "with code that is writable",
      segment(PT.LOAD, () => ({ flags: PF.R | PF.W | PF.X })),
      "has a segment that is writable and executable at once",
    ],
    [
      "with an odd alignment",
      segment(PT.LOAD, () => ({ align: 0x3000 })),
      "has a segment that is not aligned",
    ],
    [
      "with a segment in another one's place",
      segment(PT.LOAD, ({ memorySize }) => ({ memorySize: memorySize + 0x1000 })),
      "has segments that overlap or are out of order",
    ],
    [
      "with less memory than file",
      segment(PT.LOAD, () => ({ memorySize: 1 })),
      "has a segment that is larger than its memory",
    ],
    [
      "with a segment behind the end",
      segment(PT.LOAD, () => ({ fileSize: 2 ** 40, memorySize: 2 ** 40 })),
      "the program is cut off",
    ],
    ["without dynamic section", segment(PT.DYNAMIC, () => ({ type: 0 })), "is not dynamically"],
    ["without loader", segment(PT.INTERP, () => ({ type: 0 })), "asks for no dynamic loader"],
    [
      "without headers in memory",
      segment(PT.PHDR, () => ({ type: 0 })),
      "does not have its program headers in memory",
    ],
    [
      "with headers elsewhere",
      segment(PT.PHDR, ({ address }) => ({ address: address + 8 })),
      "has its program headers in another place than it says",
    ],
    ["for musl", text("ld-linux-", "ld-musl-"), "which is not glibc's: build with a Bun for glibc"],
    ["that needs another library", text("libm.so.6", "libz.so.1"), "needs ld-linux-"],
  ];
  test.each(programs)("a program %s", async (_, change, words) => {
    const refusal = await refusalOf((inputs) => {
      change(inputs.program);
      return {};
    });
    expect(refusal).toContain(words);
    expect(refusal).toStartWith("the program ");
  });

  test("a position-independent program", async () => {
    const refusal = await refusalOf(() => ({ program: independent }));
    expect(refusal).toContain("the program is position-independent");
  });

  test("a program that is cut off anywhere", async () => {
    // The last bytes are section headers, so that each length matters.
    for (let length = 0; length < program.length; length += 97) {
      const refusal = await refusalOf(() => ({ program: program.slice(0, length) }));
      expect(refusal).toMatch(/^the program is (no ELF file|cut off)$/);
    }
  });

  const withLoader = (change: (bytes: Uint8Array) => unknown) => (inputs: Inputs) => {
    change(inputs.runtime.loader.bytes);
    return {};
  };
  const withLibrary =
    (name: string, change: (bytes: Uint8Array) => unknown) => (inputs: Inputs) => {
      const library = inputs.runtime.libraries.find((each) => each.name === name);
      change(library?.bytes ?? new Uint8Array());
      return {};
    };
  const version = / release version (\d+\.\d+)/.source;
  const bannerOf = (bytes: Uint8Array) =>
    new RegExp(`(?:GNU C Library|ld\\.so) \\(.*\\) \\w+${version}`).exec(
      Buffer.from(bytes.buffer).toString("latin1"),
    )?.[0] ?? "";
  const inBanner = (change: (banner: string) => string) => (bytes: Uint8Array) =>
    text(bannerOf(bytes), change(bannerOf(bytes)))(bytes);

  const runtimes: [string, (inputs: Inputs) => Partial<Inputs>, string | RegExp][] = [
    [
      "a library that is missing",
      (inputs) => ({
        runtime: { ...inputs.runtime, libraries: inputs.runtime.libraries.slice(1) },
      }),
      /^the program needs ld-linux-.*, libm.so.6, libc.so.6, not ld-linux-.*, libc.so.6$/,
    ],
    [
      "a library that nobody needs",
      (inputs) => ({
        runtime: {
          ...inputs.runtime,
          libraries: [...inputs.runtime.libraries, { ...inputs.runtime.loader, name: "libz.so.1" }],
        },
      }),
      /^the program needs .*, not .*, libz.so.1$/,
    ],
    [
      "a library in the name of another",
      ({ runtime: { loader, libraries } }) => ({
        runtime: {
          loader,
          libraries: libraries.map(({ name }) => ({ name, bytes: loader.bytes })),
        },
      }),
      /^libm.so.6 calls itself ld-linux-/,
    ],
    [
      "a library for another machine",
      withLibrary("libm.so.6", byte(MACHINE, 3)),
      "libm.so.6 is for",
    ],
    ["a library that is a program", withLibrary("libm.so.6", byte(TYPE, 2)), "is no shared object"],
    [
      "a library that needs one more",
      withLibrary("libm.so.6", text("libc.so.6", "libz.so.1")),
      "libm.so.6 needs libz.so.1, which the program does not",
    ],
    [
      "a loader that is no ELF file",
      withLoader((bytes) => bytes.fill(0)),
      /^ld-linux-\S+ is no ELF/,
    ],
    [
      "a loader without its header in memory",
      withLoader(segment(PT.LOAD, () => ({ type: 0 }))),
      "does not begin with its header in memory",
    ],
    [
      "a glibc that is too old",
      (inputs) => {
        for (const { name, bytes } of [inputs.runtime.loader, ...inputs.runtime.libraries]) {
          if (name !== "libm.so.6") inBanner((old) => old.replace(/\d+$/, "33"))(bytes);
        }
        return {};
      },
      /^libc.so.6 is of glibc 2.33: build on a system with 2.34 or later .* --dynamic$/,
    ],
    [
      "a glibc that does not say which one it is",
      withLibrary(
        "libc.so.6",
        inBanner(() => ""),
      ),
      "libc.so.6 does not say which glibc it is of",
    ],
    [
      "a loader of another glibc",
      withLoader(
        inBanner((old) => old.replace("(", "[X").replace("[X", "(X").slice(0, old.length)),
      ),
      /^ld-linux-\S+ is of X.*, and libc.so.6 of .*: they have to be of one$/,
    ],
  ];
  test.each(runtimes)("%s", async (_, change, words) => {
    const refusal = await refusalOf(change);
    if (typeof words === "string") expect(refusal).toContain(words);
    else expect(refusal).toMatch(words);
  });

  test("in one line, whatever is broken", async () => {
    // The headers with what lies behind them, and the dynamic section.
    const dynamic = new Elf(program, "the program").segment(PT.DYNAMIC);
    if (dynamic === undefined) throw new Error("the program has no dynamic section");
    const { offset, fileSize } = dynamic;
    const place = fc.oneof(
      fc.nat({ max: 0x800 }),
      fc.integer({ min: offset, max: offset + fileSize - 1 }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(place, fc.nat({ max: 255 })), { minLength: 1, maxLength: 8 }),
        async (changes) => {
          const broken = program.slice();
          for (const [at, value] of changes) broken[at] = value;
          const made = await makeStandalone(broken, runtime, noStub, "").then(
            () => undefined,
            (error: unknown) => error,
          );
          if (made === undefined) return;
          expect(made).toBeInstanceOf(PackagingError);
          expect(String(made)).toMatch(/^[^\n]+$/);
        },
      ),
      { numRuns: 200 },
    );
  }, 60_000);
});
