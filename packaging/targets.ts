import { createHash } from "node:crypto";
import { join } from "node:path";
import { outputOf } from "./command.ts";
import { PackagingError } from "./errors.ts";
import { glibcOfCompiler, glibcOfDebian } from "./glibc.ts";
import type { Needs, Runtime } from "./inputs.ts";

/** What the file is made with for a kind of machine. What is fetched goes into the `folder`. */
export interface Target {
  readonly cc: string;
  /** The package that has `cc`, in Debian. */
  readonly ccPackage: string;
  /** What Bun compiles into, where that isn't Bun as it runs. */
  readonly bun?: (folder: string) => Promise<{ target: Bun.Build.CompileTarget; path: string }>;
  readonly glibc: (needs: Needs, folder: string) => Promise<Runtime>;
}

/** The machine that this runs on. */
export const HERE = `${process.platform}-${process.arch}`;

const native: Target = {
  cc: "cc",
  ccPackage: "gcc",
  glibc: async (needs) => await glibcOfCompiler("cc", needs),
};

const arm64: Target = {
  cc: "aarch64-linux-gnu-gcc",
  ccPackage: "gcc-aarch64-linux-gnu",
  bun: async (folder) => ({
    target: "bun-linux-arm64",
    path: await bunOf("@oven/bun-linux-aarch64", folder),
  }),
  glibc: async (needs, folder) => await glibcOfDebian("arm64", needs, folder),
};

const NAMES = ["linux-x64", "linux-arm64"];

/** @throws PackagingError where the file can't be made for it on this machine */
export function targetOf(name: string): Target {
  if (!NAMES.includes(name)) {
    throw new PackagingError(`there is no target '${name}', only ${NAMES.join(" and ")}`);
  }
  if (name === HERE) return native;
  if (name === "linux-arm64" && process.platform === "linux") return arm64;
  throw new PackagingError(`${name} can't be built for on ${HERE}: build there`);
}

/** The checksums of npm's packages, by Bun's version: the file is made of what was looked at. */
const INTEGRITY: Readonly<Record<string, string>> = {
  "1.4.5":
    "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
};

/** Fetches the executable of Bun for another platform, in the version that runs. */
async function bunOf(name: string, folder: string): Promise<string> {
  const expected = INTEGRITY[Bun.version];
  if (expected === undefined) {
    throw new PackagingError(
      `no checksum of ${name}@${Bun.version} is known: add it to ${import.meta.file}, ` +
        `from 'npm view ${name}@${Bun.version} dist.integrity'`,
    );
  }
  const archive = (
    await outputOf(["npm", "pack", "--silent", `${name}@${Bun.version}`], folder)
  ).trim();
  const bytes = await Bun.file(join(folder, archive)).bytes();
  const actual = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (actual !== expected) {
    throw new PackagingError(`${name}@${Bun.version} is ${actual}, and not ${expected}`);
  }
  await outputOf(["tar", "-xzf", archive, "package/bin/bun"], folder);
  return join(folder, "package/bin/bun");
}
