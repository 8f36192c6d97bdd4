import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Elf } from "../../packaging/elf.ts";
import { TestPlugin } from "../support/exec-plugin.ts";
import { kubeconfigText } from "../support/kubeconfig.ts";
import { getPools, register, registration } from "../support/relay.ts";
import {
  endAll,
  freePort,
  type Launch,
  projectRoot,
  run,
  Service,
  temporaryFolder,
} from "../support/service.ts";
import { canChangeRoot } from "../support/standalone.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);
afterAll(endAll);

const file = join(projectRoot, "dist/global-discovery-service");
const arm64File = `${file}-linux-arm64`;
const qemu = Bun.which("qemu-aarch64-static");

const isStandalone =
  process.platform === "linux" &&
  existsSync(file) &&
  new Elf(await Bun.file(file).bytes(), file).interpreter === undefined;
if (!isStandalone)
  console.log("skipped: the file was built with --dynamic; build it with a C compiler");
const strace = Bun.which("strace");
if (strace === null) console.log("skipped: what the service opens is seen with strace");
const canRunArm64 = qemu !== null && existsSync(arm64File);
if (!canRunArm64 && process.arch !== "arm64") {
  console.log(
    "skipped: the file for arm64 needs qemu-aarch64-static, and bun run build.ts --target linux-arm64",
  );
}

/** Starts the service, registers a pool, reads it, and stops it, with nothing to warn of. */
async function smokeTest(command: readonly string[], launch: Launch = {}): Promise<void> {
  await using service = await Service.start(command, launch);
  const sent = registration();
  await register(service.url, sent);
  const { pools } = await getPools(service.url);
  expect(pools.map(({ key }) => key)).toEqual([sent.key]);
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  expect(await service.stop()).toEqual({ status: 0, signal: null });
  // On a machine that is slow, or is made up, nothing else is amiss.
  const lines = service.lines.filter((line) => !line.includes("the process was not running"));
  for (const line of lines) expect(line).toMatch(/^\d{4}-\S+ INFO /);
}

describe.skipIf(!isStandalone)("the standalone file", () => {
  describe.skipIf(!canChangeRoot)("in an empty file system", () => {
    const root = temporaryFolder();
    beforeAll(() => {
      mkdirSync(join(root.path, "proc"));
      copyFileSync(file, join(root.path, "service"));
    });
    afterAll(() => root[Symbol.dispose]());

    test("it serves where there is only /proc", async () => {
      const script = 'mount -t proc proc "$0/proc" && exec chroot "$0" /service "$@"';
      await smokeTest(["unshare", "--mount", "sh", "-c", script, root.path]);
    });

    test("where /proc is missing too it says so in one line, and exits 1", async () => {
      const { status, stdout, stderr } = await run(["chroot", root.path, "/service", "--version"]);
      expect(stderr).toMatch(/^error: \/proc is not mounted: .*\n$/);
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    });
  });

  test.skipIf(strace === null || !canChangeRoot)("opens no library of the machine", async () => {
    using folder = temporaryFolder();
    const at = (name: string) => join(folder.path, name);
    // A name is looked up too, as Debian has it by default: more could be opened there.
    writeFileSync(at("hosts"), "127.0.0.1 localhost table.internal\n");
    writeFileSync(at("nsswitch.conf"), "passwd: files\nhosts: files dns\n");
    const script = `for name in hosts nsswitch.conf; do mount --bind "$0/$name" "/etc/$name" || exit; done
      exec strace -f -qq -e trace=open,openat,openat2,execve -o "$0/trace" "$@"`;
    await using service = await Service.start(
      ["unshare", "--mount", "sh", "-c", script, folder.path, file],
      {
        args: [
          ...["--registration-storage=dynamodb", "--dynamodb-table=pools"],
          ...["--dynamodb-region=eu-west-1", "--dynamodb-endpoint-url=http://table.internal:9"],
        ],
        env: { AWS_ACCESS_KEY_ID: "AKIATEST", AWS_SECRET_ACCESS_KEY: "not-a-secret" },
      },
    );
    await service.says(/ECONNREFUSED/);
    service.killAll();
    await service.ended();
    const lines = readFileSync(at("trace"), "utf8").split("\n");
    expect(lines.filter((line) => line.includes('"/etc/hosts"'))).not.toEqual([]);
    expect(lines.filter((line) => /ld\.so\.cache|\.so[."]/.test(line))).toEqual([]);
    expect(lines.filter((line) => line.includes("execve("))).toHaveLength(1);
  });

  describe("an exec credential plugin", () => {
    async function pluginOf(env: Readonly<Record<string, string>>) {
      using folder = temporaryFolder();
      const at = (name: string) => join(folder.path, name);
      const plugin = new TestPlugin(folder.path);
      plugin.does("env > environment; ls -l /proc/$$/fd > files; echo done > done; exit 1");
      const server = `http://127.0.0.1:${await freePort()}`;
      writeFileSync(at("config"), kubeconfigText({ cluster: { server }, user: plugin.user }));
      await using _ = await Service.start([file, "--pool-discovery=mcs"], {
        env: { KUBECONFIG: at("config"), ...env },
      });
      await until("the plugin to run", () => existsSync(at("done")) || undefined);
      return {
        environment: readFileSync(at("environment"), "utf8").split("\n"),
        files: readFileSync(at("files"), "utf8"),
      };
    }

    test("gets no LD_PRELOAD and none of the files of the libraries", async () => {
      const { environment, files } = await pluginOf({ GREETING: "hello" });
      expect(environment).toContain("GREETING=hello");
      expect(environment.filter((line) => line.startsWith("LD_"))).toEqual([]);
      expect(files).toContain("/dev/null");
      expect(files).not.toContain("memfd");
    });

    test("gets the LD_PRELOAD that the service was started with", async () => {
      using folder = temporaryFolder();
      const library = join(folder.path, "nothing.so");
      await run(["cc", "-shared", "-nostdlib", "-xc", "/dev/null", "-o", library]);
      const { environment } = await pluginOf({ LD_PRELOAD: library });
      expect(environment).toContain(`LD_PRELOAD=${library}`);
    });
  });
});

test.skipIf(!canRunArm64)("the file for arm64 serves", async () => {
  // Translating what was compiled a moment ago is slow.
  await smokeTest([qemu ?? "", arm64File], { env: { BUN_JSC_useJIT: "0" } });
});
