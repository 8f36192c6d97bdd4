import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { LICENSES } from "../../packaging/image.ts";
import { bundledPackages, noticeOf } from "../../packaging/notice.ts";
import { projectRoot, temporaryFolder } from "../support/service.ts";
import { thrownBy } from "../support/thrown-by.ts";

const GLIBC = { build: "Debian GLIBC 2.36-9+deb12u14", version: "2.36" };

let inputs: string[];

beforeAll(async () => {
  const built = await Bun.build({
    entrypoints: [join(projectRoot, "src/main.ts")],
    root: projectRoot,
    target: "bun",
    metafile: true,
  });
  inputs = Object.keys(built.metafile?.inputs ?? {}).map((path) => relative(projectRoot, path));
});

test("each npm package that is bundled is named with its version and its licence", async () => {
  const notice = await noticeOf(inputs, undefined);
  const { dependencies } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
  // All that the service depends on, and what these depend on.
  const packages = await bundledPackages(inputs);
  expect(packages.length).toBeGreaterThan(Object.keys(dependencies).length);
  for (const name of Object.keys(dependencies)) {
    const { version, license } = JSON.parse(
      readFileSync(join(projectRoot, "node_modules", name, "package.json"), "utf8"),
    );
    expect(notice).toContain(`  ${name} ${version}: ${license}\n`);
  }
  for (const { name, version, license, texts } of packages) {
    expect(notice).toContain(`  ${name} ${version}: ${license}\n`);
    for (const text of texts) expect(notice).toContain(text.trim());
  }
});

test("a package that is bundled is under a licence that the image names", async () => {
  const named = LICENSES.split(" AND ");
  for (const { name, license, texts } of await bundledPackages(inputs)) {
    expect(named, name).toContain(license);
    // Of the Apache licence there is a copy anyway; the others have the owner's name in them.
    if (license !== "Apache-2.0") expect(texts.length, name).toBeGreaterThan(0);
  }
});

test("a package that names no licence is refused", async () => {
  using folder = temporaryFolder();
  const at = join(folder.path, "node_modules/@a/b");
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, "package.json"), '{"name":"@a/b","version":"1.0.0"}');
  const input = relative(projectRoot, join(at, "lib/index.js"));
  const error = await thrownBy(() => bundledPackages([input]));
  expect(error.message).toContain("node_modules/@a/b/package.json names no licence");
});

test("glibc is named with its version, and its licence is there, where it is in the file", async () => {
  const notice = await noticeOf(inputs, GLIBC);
  expect(notice).toContain(
    "  GNU C Library 2.36 (Debian GLIBC 2.36-9+deb12u14): LGPL-2.1-or-later\n",
  );
  expect(notice).toContain("GNU LESSER GENERAL PUBLIC LICENSE");
  expect(await noticeOf(inputs, undefined)).not.toContain("GNU C Library 2");
});

test("Bun is named with its version, and what it has in it with its licences", async () => {
  const notice = await noticeOf(inputs, undefined);
  expect(notice).toContain(`  Bun ${Bun.version}: MIT\n`);
  for (const part of ["JavaScriptCore", "boringssl", "tinycc"]) expect(notice).toContain(part);
  const types = readFileSync(join(projectRoot, "node_modules/bun-types/package.json"), "utf8");
  expect(JSON.parse(types).version).toBe(Bun.version);
});

test("the notice is the project's own with more behind it", async () => {
  const own = readFileSync(join(projectRoot, "NOTICE"), "utf8");
  expect(await noticeOf(inputs, undefined)).toStartWith(own);
});
