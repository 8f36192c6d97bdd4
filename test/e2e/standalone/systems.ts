import { expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { compiledFile, type Emulator } from "../../support/dynamodb.ts";
import { commandInRoot } from "../../support/empty-root.ts";
import { NameServer } from "../../support/name-server.ts";
import { run, temporaryFolder } from "../../support/service.ts";
import { expectFinds } from "./names.ts";

/**
 * Root directories of other systems, older and newer, with another C library or none, that
 * `OTHER_SYSTEMS` names, one after the other. Says so where there are none.
 */
function otherSystems(): string[] {
  const folders = process.env.OTHER_SYSTEMS?.split(" ") ?? [];
  if (folders.length === 0) {
    console.log("skipped: the tests on other systems need OTHER_SYSTEMS; .ci/run makes such roots");
  }
  return folders;
}

/** The file in the roots of other systems, whose own libraries it must have nothing to do with. */
export function systemTests(emulator: () => Emulator): void {
  for (const system of otherSystems()) {
    test(`it serves beside ${basename(system)}`, async () => {
      const table = await emulator().createTable();
      using root = temporaryFolder();
      cpSync(system, root.path, { recursive: true, verbatimSymlinks: true });
      await using server = await NameServer.start("dynamodb.test");
      const etc = join(root.path, "etc");
      mkdirSync(etc, { recursive: true });
      writeFileSync(join(etc, "resolv.conf"), `nameserver ${server.address}\n`);
      // Modules of its own C library, which may need a newer one than the file brings along.
      const sources = "hosts: files myhostname resolve [!UNAVAIL=return] dns\n";
      writeFileSync(join(etc, "nsswitch.conf"), sources);
      const command = commandInRoot(root.path, compiledFile);
      const { status, stdout, stderr } = await run(command, { args: ["--version"] });
      expect([status, stderr]).toEqual([0, ""]);
      expect(stdout).toMatch(/^global-discovery-service \d/);
      await expectFinds(command, table, "dynamodb.test", ({ pid }) => {
        const libraries = mappedLibraries(pid);
        expect(libraries).toContain("/memfd:libc.so.6 (deleted)");
        // Modules for names are the system's own, and loaded where they can be.
        const others = libraries.filter((path) => !/^\/memfd:|\/libnss_/.test(path));
        expect(others).toEqual([]);
      });
      expect(server.asked).toContain("dynamodb.test");
    });
  }
}

/** The paths of the shared libraries that a process has in its memory. */
function mappedLibraries(pid: number): string[] {
  const maps = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  const paths = maps.map((line) => line.split(/\s+/).slice(5).join(" "));
  return [...new Set(paths.filter((path) => /\.so[. ]|\.so$/.test(path)))];
}
