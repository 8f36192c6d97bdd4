import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { Elf } from "../../packaging/elf.ts";
import { Process, projectRoot, run, temporaryFolder } from "../support/service.ts";
import { canMakeStandalone } from "../support/standalone.ts";

/** Long enough on a machine that is busy with other tests. */
const BUILD_MS = 100_000;

setDefaultTimeout(4 * BUILD_MS);

const build = [process.execPath, join(projectRoot, "build.ts")];

describe("bun run build.ts", () => {
  // All of these end before anything is built.
  test.each([
    ["an unknown switch", ["--imagine"], /^error: .*--imagine/],
    ["an argument", ["linux-arm64"], /^error: .*linux-arm64/],
    ["a target without a name", ["--target"], /^error: .*--target/],
  ])("refuses %s, and says how it is used", async (_, args, line) => {
    const { status, stdout, stderr } = await run(build, { args });
    expect(stderr).toMatch(line);
    expect(stderr).toContain("Usage: bun run build.ts");
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  });

  test("refuses a target that it doesn't know", async () => {
    const { status, stderr } = await run(build, { args: ["--target", "linux-vax"] });
    expect(stderr).toBe("error: there is no target 'linux-vax', only linux-x64 and linux-arm64\n");
    expect(status).toBe(1);
  });

  test.skipIf(process.platform !== "linux")(
    "says what to install where there is no C compiler, and how to do without",
    async () => {
      using folder = temporaryFolder();
      const { status, stderr } = await run(build, { env: { PATH: folder.path } });
      expect(stderr).toBe(
        "error: the start-up stub needs a C compiler, and there is no cc: " +
          "install it (apt-get install gcc), or build with --dynamic\n",
      );
      expect(status).toBe(1);
    },
  );

  describe.skipIf(!canMakeStandalone)("in a checkout", () => {
    const folder = temporaryFolder();
    afterAll(() => folder[Symbol.dispose]());

    /** A copy of the sources, which lies elsewhere. */
    async function checkout(name: string): Promise<string> {
      const path = join(folder.path, name);
      mkdirSync(path, { recursive: true });
      for (const each of [
        "build.ts",
        "package.json",
        "tsconfig.json",
        "bunfig.toml",
        "LICENSE",
        "NOTICE",
      ]) {
        copyFileSync(join(projectRoot, each), join(path, each));
      }
      for (const each of ["src", "packaging"]) {
        await cp(join(projectRoot, each), join(path, each), { recursive: true });
      }
      // Not as one link, which would be followed back to one place. Links to files, where they can be.
      const copy = 'cp -al "$0" "$1" 2>/dev/null || { rm -rf "$1"; cp -a "$0" "$1"; }';
      const modules = [projectRoot, path].map((each) => join(each, "node_modules"));
      expect((await run(["sh", "-c", copy, ...modules])).status).toBe(0);
      return path;
    }

    /** Builds in a checkout and returns the file. */
    async function built(cwd: string, ...args: readonly string[]): Promise<Buffer> {
      await using child = new Process([process.execPath, "build.ts", ...args], { cwd });
      const { status } = await child.ended(BUILD_MS);
      expect({ status, stderr: child.stderr }).toEqual({ status: 0, stderr: "" });
      return Buffer.from(await Bun.file(join(cwd, "dist/global-discovery-service")).bytes());
    }

    test("makes the same file wherever the sources lie, which needs no glibc", async () => {
      const here = await checkout("a");
      const one = await built(here);
      const other = await built(await checkout("another/and/deeper"));
      // Not toEqual: it would print them.
      expect(one.equals(other)).toBe(true);
      expect(new Elf(one, "the file").interpreter).toBeUndefined();
      // What it was made from is gone.
      expect(readdirSync(join(here, "dist")).sort()).toEqual([
        "NOTICE",
        "global-discovery-service",
      ]);

      const dynamic = await built(here, "--dynamic");
      expect(new Elf(dynamic, "the file").interpreter).toContain("ld-linux-");
    });
  });
});
