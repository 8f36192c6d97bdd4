import { expect, test } from "bun:test";
import { join } from "node:path";
import { expectRefusal, post, register, registerMany, registration } from "../support/relay.ts";
import { projectRoot, Service, temporaryFolder } from "../support/service.ts";
import { targetSuite } from "./targets.ts";

const command = [join(projectRoot, "dist/global-discovery-service")];

await targetSuite("the compiled file", command);

// This takes seconds, and would be the same with the source.
test("100,000 pools are held; one more is refused with 503, and renewals go on", async () => {
  await using service = await Service.start(command, { args: ["--lease-duration-secs=86400"] });
  const bodyOf = (n: number) =>
    `{"key":{"cluster_id":"c","namespace":"n","dgd_name":"d${n}"},"location":{"region":"r"},"model":"m"}`;
  await registerMany(
    service.url,
    Array.from({ length: 100_000 }, (_, n) => bodyOf(n)),
  );
  const oneMore = registration();
  await expectRefusal(await post(service.url, oneMore), 503, ["100000"]);
  await register(service.url, JSON.parse(bodyOf(0)));
  await register(service.url, { ...JSON.parse(bodyOf(1)), model: "another" });
  await expectRefusal(await post(service.url, oneMore), 503, ["100000"]);
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  await service.says(/100000/);
  const warnings = service.lines.filter((line) => line.includes("100000"));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("WARN");
});

// The source is run by `bun`, which reads these files itself.
test("what lies in the working directory changes nothing", async () => {
  using folder = temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  await Bun.write(at(".env"), "DYN_LOG=off\nDYN_LOGGING_JSONL=1\n");
  await Bun.write(at(".env.production"), "DYN_LOG=off\n");
  await Bun.write(at("bunfig.toml"), 'preload = ["./preload.ts"]\n');
  await Bun.write(at("preload.ts"), 'console.log("preloaded"); process.exit(9);');
  await Bun.write(at("package.json"), "{ this is not JSON");
  await Bun.write(at("tsconfig.json"), "{ this is not JSON");
  await using service = await Service.start(command, { cwd: folder.path });
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  expect(await service.stop()).toEqual({ status: 0, signal: null });
  expect(service.stdout).toBe("");
  for (const line of service.lines) expect(line).toMatch(/^\d{4}-.* INFO /);
});
