/**
 * A container image that holds one file, made without a container engine: a folder in the OCI image
 * layout, and the same in one tar, which is an `oci-archive` and a `docker-archive` in one.
 */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { CryptoHasher } from "bun";
import { packTar } from "modern-tar";
import { description, name, version } from "../package.json" with { type: "json" };
import { PackagingError } from "./errors.ts";

/** Of the processors that the file can be made for, in the names that OCI has for them. */
export type ImageArchitecture = "amd64" | "arm64";

/** @throws PackagingError where an image can't hold what is made for the target, such as `linux-x64` */
export function architectureOf(target: string): ImageArchitecture {
  if (target === "linux-x64") return "amd64";
  if (target === "linux-arm64") return "arm64";
  throw new PackagingError(`there are no images for ${target}, only for linux-x64 and linux-arm64`);
}

export interface ImageOptions {
  /** The executable file. */
  readonly file: string;
  readonly architecture: ImageArchitecture;
  /** The folder that becomes the layout, in place of whatever was there; the tar is `<layout>.tar`. */
  readonly layout: string;
}

export interface Image {
  readonly layout: string;
  readonly archive: string;
  /** What a registry knows the image by: `sha256:` and the hash of its manifest. */
  readonly digest: string;
}

/** What contained software is distributed under; NOTICE tells which. An SPDX licence expression. */
export const LICENSES =
  "Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND ICU AND IJG AND ISC AND LGPL-2.0-or-later AND " +
  "LGPL-2.1-or-later AND MIT AND Zlib AND libpng-2.0";

/** What the image says of itself, by the keys of the OCI image spec's annotations. */
const labels = {
  "org.opencontainers.image.description": description,
  "org.opencontainers.image.licenses": LICENSES,
  "org.opencontainers.image.title": name,
  "org.opencontainers.image.version": version,
};

/** How a container of the image runs, as `deploy/Dockerfile` says it too. */
export const runConfig = {
  // Nobody's: a number needs no /etc/passwd, and Kubernetes can see that it isn't root.
  User: "65532:65532",
  ExposedPorts: { "8080/tcp": {} },
  Entrypoint: [`/${name}`],
  WorkingDir: "/",
  Labels: labels,
};

/** No time of the build's gets into the image, so that the same file makes the same image. */
const CREATED = new Date(0);

const OCI = "application/vnd.oci.image";

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** Writes both forms of the image. Rejects where the file can't be read or the folder written. */
export async function writeImage({ file, architecture, layout }: ImageOptions): Promise<Image> {
  const blobs = new Map<string, Uint8Array<ArrayBuffer>>();
  const add = (mediaType: string, bytes: Uint8Array<ArrayBuffer>): Descriptor => {
    const digest = digestOf(bytes);
    blobs.set(pathOf(digest), bytes);
    return { mediaType, digest, size: bytes.length };
  };

  const content = await Bun.file(file).bytes();
  const tar = await tarOf(new Map([[name, content]]), 0o755);
  const layer = add(`${OCI}.layer.v1.tar+gzip`, Bun.gzipSync(tar));
  const config = add(
    `${OCI}.config.v1+json`,
    json({
      created: CREATED,
      architecture,
      os: "linux",
      config: runConfig,
      rootfs: { type: "layers", diff_ids: [digestOf(tar)] },
      history: [{ created: CREATED, created_by: "bun run build.ts --image" }],
    }),
  );
  const manifest = add(
    `${OCI}.manifest.v1+json`,
    json({
      schemaVersion: 2,
      mediaType: `${OCI}.manifest.v1+json`,
      config,
      layers: [layer],
      annotations: labels,
    }),
  );
  const tagged = `${name}:${version}`;
  const files = new Map<string, Uint8Array<ArrayBuffer>>([
    ...[...blobs].sort(([a], [b]) => (a < b ? -1 : 1)),
    [
      "index.json",
      json({
        schemaVersion: 2,
        mediaType: `${OCI}.index.v1+json`,
        manifests: [
          {
            ...manifest,
            platform: { architecture, os: "linux" },
            annotations: {
              // By this, containerd names what it imports.
              "io.containerd.image.name": `docker.io/library/${tagged}`,
              "org.opencontainers.image.ref.name": version,
            },
          },
        ],
      }),
    ],
    // How `docker load` and `docker-archive:` find their way.
    [
      "manifest.json",
      json([{ Config: pathOf(config.digest), RepoTags: [tagged], Layers: [pathOf(layer.digest)] }]),
    ],
    ["oci-layout", json({ imageLayoutVersion: "1.0.0" })],
  ]);

  const archive = `${layout}.tar`;
  await rm(layout, { recursive: true, force: true });
  await mkdir(layout, { recursive: true });
  for (const [path, bytes] of files) {
    if (path !== "manifest.json") await Bun.write(join(layout, path), bytes);
  }
  await Bun.write(archive, await tarOf(files, 0o644));
  return { layout, archive, digest: manifest.digest };
}

/** A tar of files that belong to root, in the order given. */
function tarOf(
  files: ReadonlyMap<string, Uint8Array>,
  mode: number,
): Promise<Uint8Array<ArrayBuffer>> {
  return packTar(
    [...files].map(([path, body]) => ({
      header: { name: path, size: body.length, mode, uid: 0, gid: 0, mtime: CREATED },
      body,
    })),
  );
}

function json(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${new CryptoHasher("sha256").update(bytes).digest("hex")}`;
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(":", "/")}`;
}
