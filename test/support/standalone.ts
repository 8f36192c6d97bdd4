import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elf } from "../../packaging/elf.ts";
import { glibcOfCompiler } from "../../packaging/glibc.ts";
import { needsOf, type Runtime } from "../../packaging/inputs.ts";
import { makeStandalone } from "../../packaging/standalone.ts";
import { buildStub } from "../../packaging/stub.ts";
import { projectRoot, run } from "./service.ts";

const missing = ["cc", "readelf", "objcopy", "file"].filter((name) => Bun.which(name) === null);
if (!missing.includes("cc") && !hasHeaders()) missing.push("the headers of libc");

/** Whether this machine can make standalone files and look at them; says so where it can't. */
export const canMakeStandalone = process.platform === "linux" && missing.length === 0;
if (!canMakeStandalone) {
  console.log(`skipped: the tests of the standalone file need ${missing.join(", ") || "Linux"}`);
}

function hasHeaders(): boolean {
  const stdin = Buffer.from("#include <stdio.h>\n#include <linux/seccomp.h>\n");
  return Bun.spawnSync(["cc", "-fsyntax-only", "-xc", "-"], { stdin }).success;
}

/** Whether this machine can run something in another root; says so where it can't. */
export const canChangeRoot = process.getuid?.() === 0 && Bun.which("chroot") !== null;
if (!canChangeRoot) console.log("skipped: an empty file system needs root and the chroot command");

/** A folder for the files of a test file; the caller takes it away. */
/** What the files say of whose work they are. */
export const NOTICE = "notice: nobody's work\n";

export class Workshop implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "discovery-standalone-"));

  at(name: string): string {
    return join(this.folder, name);
  }

  /** Compiles a program of `test/fixtures`. */
  async compiled(source: string, ...switches: readonly string[]): Promise<string> {
    const outfile = this.at(`${source}-${switches.join("")}`);
    const path = join(projectRoot, "test/fixtures", source);
    const { status, stderr } = await run(["cc", "-no-pie", "-o", outfile, path, ...switches]);
    if (status !== 0) throw new Error(stderr);
    return outfile;
  }

  /** What a program needs of this machine's glibc. */
  async runtimeOf(program: string): Promise<Runtime> {
    return await glibcOfCompiler("cc", needsOf(new Elf(await Bun.file(program).bytes(), program)));
  }

  /** The standalone file of a program, and its path. */
  async standalone(program: string): Promise<{ path: string; bytes: Uint8Array }> {
    const bytes = await makeStandalone(
      await Bun.file(program).bytes(),
      await this.runtimeOf(program),
      (layout) => buildStub("cc", layout),
      NOTICE,
    );
    const path = `${program}-standalone`;
    await Bun.write(path, bytes);
    chmodSync(path, 0o755);
    return { path, bytes };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}
