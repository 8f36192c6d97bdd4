import { mkdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { outputOf } from "./command.ts";
import { PackagingError } from "./errors.ts";
import type { Needs, Runtime, SharedObject } from "./inputs.ts";

/** The glibc that the compiler links with, which is the machine's own unless it is a cross compiler. */
export async function glibcOfCompiler(cc: string, needs: Needs): Promise<Runtime> {
  return await runtimeOf(needs, async (name) => {
    const path = (await outputOf([cc, `-print-file-name=${name}`])).trim();
    // It prints the bare name of what it doesn't find.
    if (!isAbsolute(path)) {
      throw new PackagingError(
        `${cc} finds no ${name}: build on a system with glibc, such as Debian, or with --dynamic`,
      );
    }
    return path;
  });
}

/**
 * The glibc of this release of Debian for another architecture, from the archives that apt knows.
 * apt checks their signatures. It keeps what it does in `folder`, so that nothing changes here.
 */
export async function glibcOfDebian(
  architecture: string,
  needs: Needs,
  folder: string,
): Promise<Runtime> {
  const apt = async (...words: string[]) =>
    await outputOf(
      [
        ...["apt-get", "-qq"],
        ...["-o", `APT::Architecture=${architecture}`],
        ...["-o", `APT::Architectures=${architecture}`],
        ...["-o", `Dir::State=${folder}`],
        // No package is installed here.
        ...["-o", "Dir::State::status=/dev/null"],
        ...["-o", `Dir::Cache=${folder}`],
        ...["-o", "Acquire::Languages=none"],
        // The folder belongs to whoever builds.
        ...["-o", "APT::Sandbox::User="],
        ...words,
      ],
      folder,
    );
  for (const own of ["lists", "archives"]) {
    await mkdir(join(folder, own, "partial"), { recursive: true });
  }
  await apt("update");
  await apt("download", "libc6");
  const [deb] = new Bun.Glob("libc6_*.deb").scanSync(folder);
  if (deb === undefined) throw new PackagingError("apt-get has downloaded no libc6");
  await outputOf(["dpkg-deb", "-x", deb, "libc6"], folder);
  const found = new Map<string, string>();
  for (const path of new Bun.Glob("**/*.so.*").scanSync({ cwd: join(folder, "libc6") })) {
    found.set(path.split("/").at(-1) ?? "", join(folder, "libc6", path));
  }
  return await runtimeOf(needs, (name) => {
    const path = found.get(name);
    if (path === undefined) throw new PackagingError(`${deb} has no ${name}`);
    return path;
  });
}

async function runtimeOf(
  { loader, libraries }: Needs,
  find: (name: string) => string | Promise<string>,
): Promise<Runtime> {
  const read = async (name: string): Promise<SharedObject> => ({
    name,
    bytes: await Bun.file(await find(name)).bytes(),
  });
  return { loader: await read(loader), libraries: await Promise.all(libraries.map(read)) };
}
