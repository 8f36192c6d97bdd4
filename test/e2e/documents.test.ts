import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { endAll, once, projectRoot, run, Service } from "../support/service.ts";

setDefaultTimeout(60_000);
afterAll(endAll);

const file = join(projectRoot, "dist/global-discovery-service");
const service = once(() => Service.start([process.execPath, "run", "start", "--"]));

/** The commands of a document's `console` blocks, each with what it prints. */
function sessions(markdown: string): { command: string; output: string }[] {
  return [...markdown.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block = ""]) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((session) => {
        // A command goes on while its quotes are open, and behind a backslash.
        const lines = session.split("\n");
        const end = lines.findIndex((line, at) => {
          const quotes = lines
            .slice(0, at + 1)
            .join("\n")
            .match(/'/g);
          return (quotes ?? []).length % 2 === 0 && !line.endsWith("\\");
        });
        return {
          command: lines.slice(0, end + 1).join("\n"),
          output: lines.slice(end + 1).join("\n"),
        };
      }),
  );
}

const missing = ["bash", "curl"].filter((command) => Bun.which(command) === null);
if (missing.length > 0) console.log(`skipped: what the documents show needs ${missing.join(", ")}`);

for (const document of ["README.md", "docs/reference.md"]) {
  const found = sessions(await Bun.file(join(projectRoot, document)).text());
  describe(document, () => {
    test("shows commands", () => expect(found.length).toBeGreaterThan(0));

    for (const { command, output } of found) {
      test.skipIf(missing.length > 0)(
        `what it shows of ${command.split("\n", 1)[0]} is what happens`,
        async () => {
          const here = command.replaceAll("http://localhost:8080", (await service()).url);
          const script = `global-discovery-service() { "${file}" "$@"; }\n${here}`;
          const { stdout, stderr } = await run([
            "bash",
            "-c",
            script.replace("curl ", "curl -sS "),
          ]);
          expect((stdout + stderr).trimEnd()).toBe(output.trimEnd());
        },
      );
    }
  });
}

test("every script that the documents tell to run is there", async () => {
  const { scripts } = await Bun.file(join(projectRoot, "package.json")).json();
  const documents = await Promise.all(
    ["README.md", "docs/performance.md"].map((name) => Bun.file(join(projectRoot, name)).text()),
  );
  const named = [...documents.join("\n").matchAll(/\b(?:bun@[\d.]+|bun) run ([a-z]+)/g)];
  expect(named.length).toBeGreaterThan(3);
  for (const [, name = ""] of named) expect(Object.keys(scripts)).toContain(name);
});
