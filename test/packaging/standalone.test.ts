import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Elf } from "../../packaging/elf.ts";
import { PF } from "../../packaging/elf-format.ts";
import { run } from "../support/service.ts";
import { canChangeRoot, canMakeStandalone, NOTICE, Workshop } from "../support/standalone.ts";

/** The lines of the probe that begin with one of these words. */
function linesOf(output: string, ...words: readonly string[]): string[] {
  return output.split("\n").filter((line) => words.includes(line.split(" ", 1)[0] ?? ""));
}

// A small program in place of Bun: what is done to it is the same.
describe.skipIf(!canMakeStandalone)("a standalone file", () => {
  const workshop = new Workshop();
  let program: string;
  let standalone: string;
  let bytes: Uint8Array;

  beforeAll(async () => {
    program = await workshop.compiled("probe.c", "-lm");
    ({ path: standalone, bytes } = await workshop.standalone(program));
  });
  afterAll(() => workshop[Symbol.dispose]());

  const probe = async (...words: readonly string[]) => {
    const { status, stdout, stderr } = await run([...words]);
    expect(stderr).toBe("");
    expect(status).toBe(0);
    return stdout;
  };

  test("finds arguments, environment, auxiliary vector and streams as the program does", async () => {
    // `exec -a` gives both the same name.
    const started = (path: string) =>
      probe("bash", "-c", 'exec -a probe "$0" "" "two words"', path).then((output) =>
        linesOf(output, "argument", "environment", "auxiliary", "stream", "clock", "root")
          .map((line) => line.replace(path, "PATH"))
          .filter((line) => !/^environment _=/.test(line)),
      );
    const found = await started(standalone);
    expect(found).toEqual(await started(program));
    expect(found).toContain("root 3");
    // The vDSO, without which the clock costs a system call.
    expect(found).toContain("auxiliary 33 set");
    expect(found.filter((line) => line.includes("LD_PRELOAD"))).toEqual([]);
  });

  test("maps no library of the machine, and nothing that is writable and executable", async () => {
    const mappings = linesOf(await probe(standalone), "mapping");
    expect(mappings.filter((line) => / \/(usr\/)?lib/.test(line))).toEqual([]);
    for (const name of ["libc.so.6", "libm.so.6"]) {
      expect(mappings).toContain(`mapping r-xp /memfd:${name} (deleted)`);
    }
    expect(mappings.filter((line) => line.startsWith("mapping rwx"))).toEqual([]);
    // Or else this would pass with nothing mapped.
    expect(linesOf(await probe(program), "mapping").join()).toMatch(/ \/(usr\/)?lib/);
  });

  test("has the paths of its libraries where nobody can change them any more", async () => {
    const mappings = linesOf(await probe(standalone), "mapping");
    const own = mappings.filter((line) => line.endsWith(standalone));
    const writable = (lines: readonly string[]) => lines.filter((line) => /^mapping .w/.test(line));
    const ofProgram = linesOf(await probe(program), "mapping").filter((l) => l.endsWith(program));
    // The program's own data and the loader's.
    expect(writable(own)).toHaveLength(writable(ofProgram).length + 1);
  });

  test("has its libraries in files that can't be changed, and that no child process gets", async () => {
    const files = linesOf(await probe(standalone), "file");
    expect(files).toEqual([3, 4].map((fd) => `file ${fd} close-on-exec sealed for good`));
  });

  test("starts with standard streams closed, and leaves them closed", async () => {
    const output = await probe("sh", "-c", `exec "${standalone}" <&- 2>&-`);
    expect(linesOf(output, "stream")).toEqual([
      "stream 0 closed",
      "stream 1 open",
      "stream 2 closed",
    ]);
  });

  test("names its libraries by its own number, so that a debugger finds them", async () => {
    const objects = linesOf(await probe(standalone), "object").join("\n");
    expect(objects).toMatch(/^object \/proc\/\d+\/fd\/\d+ with/m);
    expect(objects).not.toContain("/proc/self");
  });

  test("is as the program to readelf and file, with no warning", async () => {
    for (const command of [["readelf", "-aW"], ["file"]]) {
      const { stdout, stderr } = await run([...command, standalone]);
      expect(stderr).toBe("");
      expect(stdout.split("\n").filter((line) => /warning:|<corrupt/i.test(line))).toEqual([]);
    }
    const dynamic = async (path: string) =>
      (await run(["readelf", "-dVW", path])).stdout
        .split("\n")
        // The strings have moved.
        .filter((line) => !/STRTAB|STRSZ|Offset: |File:/.test(line) && line !== "");
    expect(await dynamic(standalone)).toEqual(await dynamic(program));
    const { stdout } = await run(["file", standalone]);
    expect(stdout).toContain("executable");
    expect(stdout).not.toContain("interpreter");
  });

  test("has the symbols and sections of the program", async () => {
    const symbols = async (path: string) => (await run(["readelf", "-sW", path])).stdout;
    expect(await symbols(standalone)).toBe(await symbols(program));
    const sectionsOf = async (path: string) =>
      (await run(["readelf", "-SW", path])).stdout
        .split("\n")
        .filter((line) => /^ {2}\[/.test(line))
        .map((line) => line.replace(/^ {2}\[ *\d+\] /, ""));
    const own = await sectionsOf(program);
    const found = await sectionsOf(standalone);
    const moved = (line: string) => /^\.(dynstr|shstrtab)/.test(line);
    for (const line of own.filter((each) => !moved(each))) expect(found).toContain(line);
    expect(found.length).toBe(own.length + 5);
  });

  test("has no segment that is writable and executable, and starts in one that is only the latter", () => {
    const { loads, entry } = new Elf(bytes, standalone);
    expect(loads.filter(({ flags }) => flags & PF.W && flags & PF.X)).toEqual([]);
    const start = loads.find(
      ({ address, memorySize }) => entry >= address && entry < address + memorySize,
    );
    expect(start?.flags).toBe(PF.R | PF.X);
  });

  test("lets the libraries be taken out as they went in", async () => {
    const { loader, libraries } = await workshop.runtimeOf(program);
    for (const { name, bytes: wanted } of [loader, ...libraries]) {
      const out = workshop.at(name);
      const section = ["-j", `.embedded.${name}`];
      const { status, stderr } = await run([
        "objcopy",
        "-O",
        "binary",
        ...section,
        standalone,
        out,
      ]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(readFileSync(out).equals(wanted)).toBe(true);
    }
  });

  test("says whose work is in it, to whoever has nothing but the file", async () => {
    const out = workshop.at("NOTICE.gz");
    const section = ["-j", ".notice.gz", "--set-section-flags", ".notice.gz=alloc"];
    const { status, stderr } = await run(["objcopy", "-O", "binary", ...section, standalone, out]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(Buffer.from(Bun.gunzipSync(readFileSync(out))).toString()).toBe(NOTICE);
  });

  test("is the same, byte for byte, when it is made again", async () => {
    const again = await workshop.standalone(program);
    expect(Buffer.from(again.bytes).equals(bytes)).toBe(true);
  });

  test("can't be made standalone again", async () => {
    const second = workshop.standalone(standalone).then(String, String);
    expect(await second).toContain("asks for no dynamic loader: it may be standalone already");
  });

  test("has a stub that compilers have nothing to say of", async () => {
    writeFileSync(workshop.at("layout.h"), "#define LIBRARIES {0}\n");
    const names = /\b(?:PROGRAM|LOADER|WRITTEN|LIBRARIES)_[A-Z_]+\b/g;
    const source = join(import.meta.dir, "../../packaging/loader.c");
    const constants = new Set(readFileSync(source, "utf8").match(names));
    const { stderr, status } = await run([
      ...[
        "cc",
        "-std=gnu11",
        "-O2",
        "-ffreestanding",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
      ],
      ...[...constants].map((name) => `-D${name}=0UL`),
      ...[`-I${workshop.folder}`, "-c", "-o", "/dev/null", source],
    ]);
    expect(stderr).toBe("");
    expect(status).toBe(0);
  });

  describe.skipIf(!canChangeRoot)("in an empty file system", () => {
    const root = workshop.at("root");
    beforeAll(() => {
      mkdirSync(join(root, "etc"), { recursive: true });
      mkdirSync(join(root, "proc"));
      copyFileSync(standalone, join(root, "probe"));
    });
    const inRoot = (...words: readonly string[]) => [
      ...[
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"',
      ],
      ...[root, ...words],
    ];

    test("it runs where there is only /proc", async () => {
      const output = await probe(...inRoot("/probe"));
      expect(linesOf(output, "root")).toEqual(["root 1"]);
    });

    test("it runs with another user's rights, where the loader trusts no environment", async () => {
      const trusted = workshop.at("set-user-id");
      copyFileSync(standalone, trusted);
      chownSync(trusted, 65532, 65532);
      chmodSync(trusted, 0o4755);
      const output = await probe(trusted);
      expect(linesOf(output, "auxiliary")).toContain("auxiliary 23 0x1");
      expect(linesOf(output, "root")).toEqual(["root 1"]);
    });

    test("names are looked up in /etc/hosts without nsswitch.conf", async () => {
      writeFileSync(join(root, "etc/hosts"), "192.0.2.7 table.internal\n");
      writeFileSync(
        join(root, "etc/resolv.conf"),
        "nameserver 127.0.0.1:1\noptions timeout:1 attempts:1\n",
      );
      const output = await probe(...inRoot("/probe", "table.internal"));
      expect(linesOf(output, "address")).toEqual(["address table.internal 192.0.2.7"]);
    });

    test("where /proc is missing it says so in one line, and exits 1", async () => {
      const { status, stdout, stderr } = await run(["chroot", root, "/probe"]);
      expect(stderr).toMatch(/^error: \/proc is not mounted: mount it .*--dynamic.*\n$/);
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    });

    test("where something else is at /proc it says so in one line, and exits 1", async () => {
      const [command, ...rest] = inRoot("/probe");
      const other = rest.map((word) =>
        word.replace("mount -t proc proc", "ln -s 7").replace('proc" &&', 'proc/self" &&'),
      );
      const { status, stderr } = await run([command ?? "", ...other]);
      expect(stderr).toMatch(
        /^error: the files of this process can't be opened in \/proc \(errno 2\): mount .*\n$/,
      );
      expect(status).toBe(1);
    });
  });

  describe("where the kernel", () => {
    let without: string;
    // memfd_create, by the numbers of the two machines.
    const call = process.arch === "x64" ? "319" : "279";
    beforeAll(async () => {
      without = await workshop.compiled("without-call.c");
    });

    test.each([
      [
        "forbids memfd_create",
        1,
        /^error: memfd_create is forbidden here \(errno 1\): allow it .*\n$/,
      ],
      [
        "has no memfd_create",
        38,
        /^error: this system has no memfd_create \(errno 38\): run it on Linux 3\.17 .*\n$/,
      ],
      [
        "has no memory left",
        12,
        /^error: the embedded libraries can't be put into memory \(errno 12\): raise .*\n$/,
      ],
    ])("%s it says so in one line, and exits 1", async (_, errno, line) => {
      const { status, stdout, stderr } = await run([without, call, String(errno), standalone]);
      expect(stderr).toMatch(line);
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    });

    test("allows fewer open files than it needs it says so in one line, and exits 1", async () => {
      const { status, stderr } = await run(["sh", "-c", `ulimit -n 4; exec "${standalone}"`]);
      expect(stderr).toMatch(
        /^error: the embedded libraries can't .* \(errno 24\): raise the limit on open files.*\n$/,
      );
      expect(status).toBe(1);
    });
  });
});
