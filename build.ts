/** Makes `dist/global-discovery-service`, one executable file. */
import { chmod, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Elf } from "./packaging/elf.ts";
import { PackagingError } from "./packaging/errors.ts";
import { architectureOf, writeImage } from "./packaging/image.ts";
import { glibcOf, needsOf, type Runtime } from "./packaging/inputs.ts";
import { noticeOf } from "./packaging/notice.ts";
import { makeStandalone } from "./packaging/standalone.ts";
import { buildStub } from "./packaging/stub.ts";
import { HERE, type Target, targetOf } from "./packaging/targets.ts";

const USAGE = `Usage: bun run build.ts [--dynamic] [--image] [--target linux-x64|linux-arm64]

Makes dist/global-discovery-service, which needs nothing but a Linux kernel and /proc, and
dist/NOTICE, which is to be handed on with it.

  --dynamic        needs glibc on the machine that it runs on, but no C compiler to be made
  --image          makes an image of it, too: dist/image, in the OCI layout, and dist/image.tar
  --target <name>  for another machine than this one: dist/global-discovery-service-<name>, …
  --help           prints this`;

/** How a program is made into the executable `outfile`. */
export function buildSwitches(outfile: string) {
  return {
    compile: {
      outfile,
      // Whatever lies in the directory that the service is started in must not change what it does.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    },
    format: "esm",
    // What a mode doesn't use stays out of its start: --help loads neither the server nor the schema.
    splitting: true,
    // Of packages that have both, the modules: of CommonJS nothing could be left out.
    conditions: "module",
    // Names stay, for stack traces.
    minify: { syntax: true, whitespace: true, identifiers: false },
    sourcemap: "inline",
    // Halves the time of a start. Deeper, it would make the file 1 MB larger for a tenth of that.
    bytecode: true,
    bytecodeDepth: 1,
    throw: false,
  } as const;
}

interface Options {
  readonly target: string;
  /** Whether glibc is looked for where it runs. */
  readonly dynamic: boolean;
}

/**
 * Builds the service and returns the path of the file.
 *
 * @throws PackagingError where it can't be built
 */
export async function build({ target: name, dynamic }: Options): Promise<string> {
  const outfile = placeOf("global-discovery-service", name);
  // Elsewhere than on Linux only the ordinary file can be made, and only for there.
  const target = name === HERE && dynamic ? undefined : targetOf(name);
  if (target !== undefined && !dynamic && Bun.which(target.cc) === null) {
    throw new PackagingError(
      `the start-up stub needs a C compiler, and there is no ${target.cc}: ` +
        `install it (apt-get install ${target.ccPackage}), or build with --dynamic`,
    );
  }
  await mkdir("dist", { recursive: true });
  // Beside the file, so that what is complete can take its place at once.
  const folder = await mkdtemp(resolve("dist/.build-"));
  try {
    const compiled = await compile(folder, target);
    let made = compiled.outfile;
    let notice: string;
    if (target === undefined || dynamic) {
      notice = await noticeOf(compiled.inputs, undefined);
    } else {
      const program = new Elf(await Bun.file(made).bytes(), basename(made));
      const glibc = await target.glibc(needsOf(program), folder);
      const known = glibcOf(glibc.loader.bytes);
      notice = await noticeOf(compiled.inputs, known);
      made = await embed({ program: made, glibc, notice, cc: target.cc });
      console.log(`with the ${known?.build} in it`);
    }
    await Bun.write(placeOf("NOTICE", name), notice);
    await rename(made, outfile);
  } finally {
    await rm(folder, { recursive: true });
  }
  return outfile;
}

/** Where what is made for a target is put. */
function placeOf(what: string, target: string): string {
  return `dist/${what}${target === HERE ? "" : `-${target}`}`;
}

/** Returns the paths of the file and of all that was bundled into it. */
async function compile(
  folder: string,
  target: Target | undefined,
): Promise<{ outfile: string; inputs: string[] }> {
  // The file has its own name in it.
  const outfile = join(folder, "global-discovery-service");
  const { compile, ...switches } = buildSwitches(outfile);
  const bun = await target?.bun?.(folder);
  const into = bun && { target: bun.target, executablePath: bun.path };
  const built = await Bun.build({
    ...switches,
    compile: { ...compile, ...into },
    entrypoints: ["src/main.ts"],
    metafile: true,
  });
  if (!built.success) throw new PackagingError(built.logs.join("\n"));
  return { outfile, inputs: Object.keys(built.metafile?.inputs ?? {}) };
}

/** Puts glibc into a program, and the notice that has to go with it. Returns the path of the new one. */
async function embed({
  program,
  glibc,
  notice,
  cc,
}: {
  readonly program: string;
  readonly glibc: Runtime;
  readonly notice: string;
  readonly cc: string;
}): Promise<string> {
  const bytes = await Bun.file(program).bytes();
  const file = await makeStandalone(bytes, glibc, (layout) => buildStub(cc, layout), notice);
  const standalone = `${program}-standalone`;
  await Bun.write(standalone, file);
  await chmod(standalone, 0o755);
  return standalone;
}

/** Returns the exit status. */
async function main(words: string[]): Promise<number> {
  let values: { target: string; dynamic: boolean; image: boolean; help: boolean };
  try {
    ({ values } = parseArgs({
      args: words,
      options: {
        target: { type: "string", default: HERE },
        dynamic: { type: "boolean", default: false },
        image: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }));
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const { target, image } = values;
  const dynamic = values.dynamic || process.platform !== "linux";
  try {
    const architecture = image ? architectureOf(target) : undefined;
    if (image && dynamic) {
      throw new PackagingError(
        "an image has no glibc for what --dynamic makes: leave one of the two out",
      );
    }
    const outfile = await build({ target, dynamic });
    console.log(`${outfile}: ${(Bun.file(outfile).size / 1e6).toFixed(1)} MB`);
    if (architecture !== undefined) {
      const layout = placeOf("image", target);
      const { archive, digest } = await writeImage({ file: outfile, architecture, layout });
      console.log(`${layout} and ${archive}: ${digest}`);
    }
    return 0;
  } catch (error) {
    if (!(error instanceof PackagingError)) throw error;
    console.error(`error: ${error.message}`);
    return 1;
  }
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
