/** What has to be handed on with the file: whose work is in it, and under which licences. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PackagingError } from "./errors.ts";

const ROOT = join(import.meta.dir, "..");

/** Bun's own notice, from the package that comes with each version of it. */
const BUN_NOTICE = "node_modules/bun-types/docs/project/license.mdx";

/** Where Debian says whose work glibc is. */
const GLIBC_NOTICE = "/usr/share/doc/libc6/copyright";

/** An npm package of which at least one file was bundled. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** By its SPDX identifier. */
  readonly license: string;
  /** Its licence files and the like; few packages have more than one, some have none. */
  readonly texts: readonly string[];
}

/**
 * The packages that the bundler has read from, sorted by name.
 *
 * @param inputs paths from the project's folder, as Bun's metafile has them
 * @throws PackagingError where one does not say which licence it is under
 */
export async function bundledPackages(inputs: Iterable<string>): Promise<BundledPackage[]> {
  const folders = new Set<string>();
  for (const input of inputs) {
    // The innermost, where one package has another for itself.
    const [folder] = /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  const packages = await Promise.all([...folders].map(readPackage));
  const key = ({ name, version }: BundledPackage) => `${name} ${version}`;
  return packages.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

async function readPackage(folder: string): Promise<BundledPackage> {
  const path = join(ROOT, folder);
  const { name, version, license } = await Bun.file(join(path, "package.json")).json();
  if (typeof license !== "string") {
    throw new PackagingError(`${folder}/package.json names no licence: it can't be handed on`);
  }
  const files = readdirSync(path).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = await Promise.all(files.sort().map((file) => Bun.file(join(path, file)).text()));
  return { name, version, license, texts };
}

/**
 * The notice for a file.
 *
 * @param inputs what was bundled into it
 * @param glibc the one that is in it, if any is
 */
export async function noticeOf(
  inputs: Iterable<string>,
  glibc: { readonly build: string; readonly version: string } | undefined,
): Promise<string> {
  const packages = await bundledPackages(inputs);
  const list = [
    `Bun ${Bun.version}: MIT`,
    ...(glibc === undefined
      ? []
      : [`GNU C Library ${glibc.version} (${glibc.build}): LGPL-2.1-or-later`]),
    ...packages.map(({ name, version, license }) => `${name} ${version}: ${license}`),
  ];
  const read = async (path: string) => await Bun.file(join(ROOT, path)).text();
  const parts = [
    await read("NOTICE"),
    `In this build are:\n\n${list.map((line) => `  ${line}\n`).join("")}`,
    titled("Apache License 2.0", await read("LICENSE")),
    titled("GNU Lesser General Public License 2.1", await read("packaging/LGPL-2.1.txt")),
    titled(`Bun ${Bun.version}`, await read(BUN_NOTICE)),
  ];
  if (glibc !== undefined && existsSync(GLIBC_NOTICE)) {
    parts.push(titled("GNU C Library", await Bun.file(GLIBC_NOTICE).text()));
  }
  for (const [text, names] of namesByText(packages)) parts.push(titled(names.join(", "), text));
  return parts.join("\n");
}

/** The texts of the packages, each once, with the names of all that have it. */
function namesByText(packages: readonly BundledPackage[]): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const { name, texts } of packages) {
    for (const text of texts) names.set(text, [...(names.get(text) ?? []), name]);
  }
  return names;
}

function titled(title: string, text: string): string {
  return `${"=".repeat(78)}\n${title}\n${"=".repeat(78)}\n\n${text.trim()}\n`;
}
