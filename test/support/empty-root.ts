import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The user that images and manifests name. */
export const NOBODY = 65532;

const FILE = "global-discovery-service";

const UNSHARE_MOUNTS = ["unshare", "--mount", "--propagation", "private"];
const UNSHARE_USER = `unshare --user --map-user=${NOBODY} --map-group=${NOBODY}`;

/**
 * Mounts what a container runtime would mount, into a mount namespace of its own: the file, /proc, and
 * the folder with the tests' own certificates and the like. From then on the root can't be written.
 * The file runs as a user without any rights; for the tests' files to be his, he is root outside of
 * his user namespace.
 */
const SCRIPT = `
set -e
root=$1; file=$2; own=$3; shift 3
mount --bind "$root" "$root"
mount --bind "$file" "$root/${FILE}"
mount -t proc proc "$root/proc"
mount --bind "$own" "$root$own"
for each in "/${FILE}" "$own" ""; do mount -o remount,bind,ro "$root$each"; done
exec ${UNSHARE_USER} --root="$root" --wd=/ "/${FILE}" "$@"
`;

/**
 * Makes a folder the root directory of what `file` starts.
 *
 * @returns the command that starts it: the process that it makes is the service's own
 */
export function commandInRoot(root: string, file: string): string[] {
  // A temporary folder is its owner's alone.
  chmodSync(root, 0o755);
  for (const folder of ["proc", tmpdir()]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, FILE), "");
  return [...UNSHARE_MOUNTS, "sh", "-c", SCRIPT, "sh", root, file, tmpdir()];
}

/** Whether such a command can be run here. Says so where it can't, and which tests that skips. */
export function canUseRoots(tests: string): boolean {
  const probe = `mount -t proc proc /proc && exec ${UNSHARE_USER} true`;
  try {
    if (Bun.spawnSync([...UNSHARE_MOUNTS, "sh", "-c", probe]).success) return true;
  } catch {
    // There is no such command here.
  }
  console.log(`skipped: ${tests} need root, and the commands unshare (2.38 or later) and mount`);
  return false;
}
