import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CryptoHasher, Glob } from "bun";
import { unpackTar } from "modern-tar";
import { description, name, version } from "../../package.json" with { type: "json" };
import {
  architectureOf,
  type Image,
  LICENSES,
  runConfig,
  writeImage,
} from "../../packaging/image.ts";
import { projectRoot, run, temporaryFolder } from "../support/service.ts";

const CONTENT = "\x7fELF and so on\n";

const folder = temporaryFolder();
const at = (path: string) => join(folder.path, path);
const file = at(name);
const layout = at("image");
const tagged = `oci:${layout}:${version}`;
let image: Image;

beforeAll(async () => {
  writeFileSync(file, CONTENT);
  chmodSync(file, 0o755);
  image = await writeImage({ file, architecture: "amd64", layout });
});
afterAll(() => folder[Symbol.dispose]());

/** Whether these commands are here. Says so where they aren't, and which tests that skips. */
function has(tests: string, ...commands: readonly string[]): boolean {
  const missing = commands.filter((command) => Bun.which(command) === null);
  if (missing.length > 0) console.log(`skipped: ${tests} need ${missing.join(", ")}`);
  return missing.length === 0;
}

/** What a command prints; fails with what it says where it fails. */
function outputOf(...command: readonly string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync([...command], { cwd: folder.path });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString();
}

function configOf(reference: string) {
  return JSON.parse(outputOf("skopeo", "inspect", "--config", reference));
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${new CryptoHasher("sha256").update(bytes).digest("hex")}`;
}

function filesIn(path: string): string[] {
  return [...new Glob("**").scanSync({ cwd: path, dot: true })].sort();
}

function indexOf(path: string) {
  return JSON.parse(readFileSync(join(path, "index.json"), "utf8"));
}

test("a blob is called by its hash, and is as large as its descriptor says", () => {
  const blob = ({ digest, size }: { digest: string; size: number }) => {
    const bytes = readFileSync(join(layout, "blobs", digest.replace(":", "/")));
    expect(digest).toBe(sha256(bytes));
    expect(bytes).toHaveLength(size);
    return bytes;
  };
  const [described] = indexOf(layout).manifests;
  expect(described.digest).toBe(image.digest);
  const manifest = JSON.parse(blob(described).toString());
  const config = JSON.parse(blob(manifest.config).toString());
  const layers: Buffer[] = manifest.layers.map(blob);
  expect(config.rootfs.diff_ids).toEqual(
    layers.map((layer) => sha256(Bun.gunzipSync(Buffer.from(layer)))),
  );
  expect(filesIn(layout)).toHaveLength(
    ["oci-layout", "index.json", "manifest", "config", "layer"].length,
  );
});

test("an image says what it is, under which licences, and for which machine", async () => {
  const architecture = architectureOf("linux-arm64");
  const arm64 = await writeImage({ file, architecture, layout: at("arm64") });
  expect(indexOf(arm64.layout).manifests[0].platform).toEqual({
    architecture: "arm64",
    os: "linux",
  });
  expect(runConfig.Labels).toEqual({
    "org.opencontainers.image.description": description,
    "org.opencontainers.image.licenses": LICENSES,
    "org.opencontainers.image.title": name,
    "org.opencontainers.image.version": version,
  });
});

test("an image is for Linux, on x64 or arm64", () => {
  expect(architectureOf("linux-x64")).toBe("amd64");
  expect(() => architectureOf("darwin-arm64")).toThrow("no images for darwin-arm64");
});

test("an image of a file that needs glibc is refused before anything is made", async () => {
  const args = ["build.ts", "--image", "--dynamic", "--target", "linux-x64"];
  const { status, stderr } = await run([process.execPath, ...args]);
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^error: .*--dynamic.*\n$/)]);
});

test("the same file makes the same image, whenever and wherever", async () => {
  utimesSync(file, 1, 1);
  const again = await writeImage({ file, architecture: "amd64", layout: at("again") });
  expect(again.digest).toBe(image.digest);
  expect(readFileSync(again.archive).equals(readFileSync(image.archive))).toBe(true);
  expect(filesIn(again.layout)).toEqual(filesIn(layout));
  for (const path of filesIn(layout)) {
    const [one, other] = [layout, again.layout].map((each) => readFileSync(join(each, path)));
    expect(other, path).toEqual(one);
  }
});

test("nothing of the machine that made it is in the archive, nor in the layer", async () => {
  const [described] = indexOf(layout).manifests;
  const bytesOf = ({ digest }: { digest: string }) =>
    readFileSync(join(layout, "blobs", digest.replace(":", "/")));
  const [layer] = JSON.parse(bytesOf(described).toString()).layers;
  for (const [tar, mode] of [
    [Bun.gunzipSync(bytesOf(layer)), 0o755],
    [readFileSync(image.archive), 0o644],
  ] as const) {
    const entries = await unpackTar(tar);
    expect(entries.length).toBeGreaterThan(0);
    for (const { header } of entries) {
      const { uid, gid, uname, gname, mtime } = header;
      expect([uid, gid, uname ?? "", gname ?? ""]).toEqual([0, 0, "", ""]);
      expect([mtime, header.mode]).toEqual([new Date(0), mode]);
    }
  }
});

test("an image takes the place of the one before", async () => {
  const replaced = at("replaced");
  await writeImage({ file: import.meta.path, architecture: "amd64", layout: replaced });
  await writeImage({ file, architecture: "amd64", layout: replaced });
  expect(filesIn(replaced)).toEqual(filesIn(layout));
});

const hasTools = has("the tests of what other tools make of the image", "skopeo", "umoci");

describe.skipIf(!hasTools)("other tools", () => {
  test("skopeo finds the layout's image by its tag, and shows how it is run", () => {
    expect(JSON.parse(outputOf("skopeo", "inspect", tagged))).toMatchObject({
      Digest: image.digest,
      Architecture: "amd64",
      Os: "linux",
      Created: "1970-01-01T00:00:00Z",
    });
    expect(configOf(tagged).config).toEqual(runConfig);
  });

  test("the tar is read as an OCI archive and as a Docker archive, with the same image in it", () => {
    for (const reference of [
      `oci-archive:${image.archive}:${version}`,
      `docker-archive:${image.archive}:${name}:${version}`,
    ]) {
      expect(configOf(reference), reference).toEqual(configOf(tagged));
    }
  });

  test("the image survives the way to a Docker archive and back", () => {
    outputOf("skopeo", "copy", tagged, `docker-archive:${at("there.tar")}`);
    outputOf("skopeo", "copy", `docker-archive:${at("there.tar")}`, `oci:${at("back")}:x`);
    expect(configOf(`oci:${at("back")}:x`)).toEqual(configOf(tagged));
  });

  test("umoci unpacks the file, for all to run, and nothing else", () => {
    const rootless = process.getuid?.() === 0 ? [] : ["--rootless"];
    const bundle = at("bundle");
    outputOf("umoci", "unpack", ...rootless, "--image", `${layout}:${version}`, bundle);
    const rootfs = join(bundle, "rootfs");
    expect(filesIn(rootfs)).toEqual([name]);
    expect(readFileSync(join(rootfs, name), "utf8")).toBe(CONTENT);
    const { mode, mtimeMs, uid, gid } = statSync(join(rootfs, name));
    expect([mode & 0o7777, mtimeMs]).toEqual([0o755, 0]);
    expect([uid, gid]).toEqual([process.getuid?.() ?? 0, process.getgid?.() ?? 0]);
    const { process: started } = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8"));
    expect(started).toMatchObject({ user: { uid: 65532, gid: 65532 }, args: [`/${name}`] });
  });
});

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("skipped: the test of deploy/Dockerfile needs root");

test.skipIf(!isRoot || !has("the tests of deploy/Dockerfile", "buildah", "skopeo"))(
  "deploy/Dockerfile makes an image that is run in the same way",
  () => {
    const buildah = (...args: readonly string[]) => {
      const store = ["--storage-driver", "vfs", "--root", at("store"), "--runroot", at("run")];
      outputOf("buildah", ...store, ...args);
    };
    const dockerfile = join(projectRoot, "deploy/Dockerfile");
    buildah("build", "--isolation", "chroot", "--file", dockerfile, "--tag", "built", folder.path);
    buildah("push", "built", `oci:${at("built")}:x`);
    const { config, rootfs } = configOf(`oci:${at("built")}:x`);
    const { Env, ...rest } = config;
    // Every builder says this, of whatever image.
    expect(Env).toEqual([expect.stringMatching(/^PATH=/)]);
    delete rest.Labels["io.buildah.version"];
    expect(rest).toEqual(runConfig);
    expect(rootfs.diff_ids).toHaveLength(1);
  },
);
