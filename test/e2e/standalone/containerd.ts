import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { name, version } from "../../../package.json" with { type: "json" };
import type { Image } from "../../../packaging/image.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { register } from "../../support/relay.ts";
import { Process, run, Service, temporaryFolder } from "../../support/service.ts";

const missing = ["containerd", "ctr"].filter((command) => Bun.which(command) === null);

/** What the container runtime of most clusters makes of the image, with a system call filter of its own. */
export function containerdTests(image: Image): void {
  if (missing.length > 0)
    console.log(`skipped: the tests of containerd need ${missing.join(", ")}`);

  describe.skipIf(missing.length > 0)("containerd", () => {
    const folder = temporaryFolder();
    const at = (path: string) => join(folder.path, path);
    const ctr = ["ctr", "--address", at("socket")];
    const reference = `docker.io/library/${name}:${version}`;
    let daemon: Process;

    beforeAll(async () => {
      // The plugin that is off is for kubelets, and wants a network of its own.
      const config = `
        version = 2
        root = "${at("root")}"
        state = "${at("state")}"
        disabled_plugins = ["io.containerd.grpc.v1.cri"]
        [grpc]
        address = "${at("socket")}"
      `;
      writeFileSync(at("config.toml"), config);
      daemon = new Process(["containerd", "--config", at("config.toml")]);
      await daemon.says(/successfully booted/);
      const { status, stderr } = await run([...ctr, "images", "import", image.archive]);
      expect(stderr).toBe("");
      expect(status).toBe(0);
    });
    afterAll(async () => {
      // It goes on without containerd, where a test has failed.
      await run([...ctr, "tasks", "delete", "--force", "service"]);
      await daemon?.[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    });

    test("knows the image by its name and its digest", async () => {
      const { stdout } = await run([...ctr, "images", "list"]);
      expect(stdout).toMatch(new RegExp(`^${reference} .* ${image.digest} `, "m"));
    });

    test("runs it under its own profile of system calls, and stops it", async () => {
      const sandbox = ["--rm", "--net-host", "--read-only", "--seccomp"];
      const command = [...ctr, "run", ...sandbox, reference, "service", `/${name}`];
      await using service = await Service.start(command);
      await register(service.url, poolNamed("a"));
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
      expect(await service.stop()).toEqual({ status: 0, signal: null });
      expect(service.stderr).not.toMatch(/ERROR|WARN(?!.*not running)/);
    });
  });
}
