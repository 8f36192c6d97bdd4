import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Debian's golang-github-containers-common has it, which skopeo needs. */
const SECCOMP_PROFILE = "/usr/share/containers/seccomp.json";

/** The processors that seccomp has names for, by Node's. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: "SCMP_ARCH_X86_64",
  arm64: "SCMP_ARCH_AARCH64",
};

/** Of a profile: what may be done where a container has none of the capabilities. */
interface SyscallRule {
  readonly names: readonly string[];
  readonly action: string;
  readonly args: readonly object[] | null;
  readonly includes: { readonly caps?: readonly string[]; readonly arches?: readonly string[] };
  readonly excludes: { readonly caps?: readonly string[]; readonly arches?: readonly string[] };
  readonly errnoRet?: number;
}

/** Whether containers can be run here. Says so where they can't, and which tests that skips. */
export function canRunContainers(tests: string): boolean {
  const missing = [
    ...["runc", "umoci"].filter((command) => Bun.which(command) === null),
    ...(existsSync(SECCOMP_PROFILE) ? [] : [SECCOMP_PROFILE]),
    ...(process.getuid?.() === 0 ? [] : ["root"]),
  ];
  if (missing.length === 0) return true;
  console.log(`skipped: ${tests} need ${missing.join(", ")}`);
  return false;
}

/** An image that is unpacked, to be run in containers as a kubelet would by `deploy/kubernetes`. */
export class UnpackedImage implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "containers-"));
  readonly #state = join(this.#folder, "state");
  /** What is in its root directory, before containers have places for mounts in it. */
  readonly files: readonly string[];

  /** @param layout a folder in the OCI image layout, and the tag in it, as `folder:tag` */
  constructor(layout: string) {
    runSync("umoci", "unpack", "--image", layout, join(this.#folder, "bundle"));
    this.files = readdirSync(join(this.#folder, "bundle/rootfs"));
    this.#restrict();
  }

  /** What starts a container in this process's place, to which arguments are added. */
  get command(): string[] {
    const program = join(import.meta.dir, "run-container.ts");
    return [process.execPath, program, join(this.#folder, "bundle"), this.#state];
  }

  /** Ends containers that are left over: they outlive the `runc` that has started them. */
  [Symbol.dispose](): void {
    const states = existsSync(this.#state) ? readdirSync(this.#state) : [];
    for (const id of states) runSync("runc", "--root", this.#state, "delete", "--force", id);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The manifests' securityContext, and what a container runtime does by itself. */
  #restrict(): void {
    const path = join(this.#folder, "bundle/config.json");
    const config = JSON.parse(readFileSync(path, "utf8"));
    Object.assign(config.process, {
      terminal: false,
      capabilities: {},
      noNewPrivileges: true,
      rlimits: [],
    });
    config.root.readonly = true;
    config.linux.seccomp = seccompProfile();
    // The tests are clients and peers by 127.0.0.1.
    config.linux.namespaces = config.linux.namespaces.filter(
      ({ type }: { type: string }) => type !== "network",
    );
    // Where Secrets and the like would be mounted.
    config.mounts.push({
      destination: tmpdir(),
      source: tmpdir(),
      options: ["bind", "ro"],
    });
    writeFileSync(path, JSON.stringify(config));
  }
}

function runSync(...command: readonly string[]): void {
  const { success, stderr } = Bun.spawnSync([...command]);
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
}

/**
 * The profile of Debian's container engines, for a container without capabilities, made as strict as
 * the default of containerd and Docker.
 */
function seccompProfile(): object {
  const { syscalls }: { syscalls: SyscallRule[] } = JSON.parse(
    readFileSync(SECCOMP_PROFILE, "utf8"),
  );
  const goArch = process.arch === "x64" ? "amd64" : process.arch;
  const applies = ({ includes, excludes }: SyscallRule) =>
    includes.caps === undefined &&
    (includes.arches?.includes(goArch) ?? true) &&
    !excludes.arches?.includes(goArch);
  // clone3 is refused since its flags can't be looked at.
  const refused = (name: string) => name.startsWith("io_uring_") || name === "clone3";
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: EPERM,
    architectures: [ARCHITECTURES[process.arch]],
    syscalls: [
      { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
      ...syscalls.filter(applies).map(({ names, action, args, errnoRet }) => ({
        names: names.filter((name) => !refused(name)),
        action,
        args: args ?? [],
        ...(errnoRet === undefined ? {} : { errnoRet }),
      })),
    ],
  };
}

const EPERM = 1;
const ENOSYS = 38;
