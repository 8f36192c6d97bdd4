import { afterAll, beforeAll, describe, setDefaultTimeout } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../../package.json" with { type: "json" };
import { Elf } from "../../../packaging/elf.ts";
import { architectureOf, writeImage } from "../../../packaging/image.ts";
import { HERE } from "../../../packaging/targets.ts";
import { canRunContainers, UnpackedImage } from "../../support/container.ts";
import { cleanUp, compiledFile, dynoxide, Emulator, isInstalled } from "../../support/dynamodb.ts";
import { canUseRoots, commandInRoot } from "../../support/empty-root.ts";
import { KubeApiServer, kubernetesPrograms } from "../../support/kube-apiserver.ts";
import { Service, temporaryFolder } from "../../support/service.ts";
import { blackBoxSuite } from "../black-box.ts";
import { drainTests } from "../process/signals.ts";
import { tlsTests } from "../process/tls.ts";
import { targetSuite } from "../targets.ts";
import { containerdTests } from "./containerd.ts";
import { containerTests } from "./containers.ts";
import { modeTests } from "./modes.ts";
import { nameTests } from "./names.ts";
import { systemTests } from "./systems.ts";

setDefaultTimeout(120_000);

/** Whether the file brings all that it needs. Says so where it doesn't. */
async function isStandalone(): Promise<boolean> {
  if (existsSync(compiledFile)) {
    const bytes = await Bun.file(compiledFile).bytes();
    if (new Elf(bytes, compiledFile).interpreter === undefined) return true;
  }
  console.log("skipped: there is no standalone file to be tested: bun run build.ts");
  return false;
}

// All of it is in one file, so that what the service talks to is started once.
if (canUseRoots("the tests of the file with nothing around it") && (await isStandalone())) {
  const root = temporaryFolder();
  let emulator: Emulator;
  let apiServer: KubeApiServer;
  const programs = kubernetesPrograms();
  const hasDynamoDB = isInstalled(dynoxide);
  beforeAll(async () => {
    if (hasDynamoDB) emulator = await Emulator.start(dynoxide);
    if (programs !== undefined) apiServer = await KubeApiServer.start(programs);
  });
  afterAll(async () => {
    await apiServer?.[Symbol.asyncDispose]();
    await cleanUp();
    root[Symbol.dispose]();
  });
  const peers = {
    hasDynamoDB,
    emulator: () => emulator,
    hasApiServer: programs !== undefined,
    apiServer: () => apiServer,
  };

  const inRoot = commandInRoot(root.path, compiledFile);
  await targetSuite("in an empty root", inRoot);
  describe("in an empty root", () => modeTests(inRoot, peers));
  describe.skipIf(!hasDynamoDB)("names are resolved", () => nameTests(peers.emulator));
  describe.skipIf(!hasDynamoDB)("on another system", () => systemTests(peers.emulator));

  if (canRunContainers("the tests of the image")) {
    const layout = join(root.path, "image");
    const architecture = architectureOf(HERE);
    const image = await writeImage({ file: compiledFile, architecture, layout });
    const unpacked = new UnpackedImage(`${layout}:${version}`);
    afterAll(() => unpacked[Symbol.dispose]());
    const { command } = unpacked;
    const shared = await Service.start(command, { args: ["--lease-duration-secs", "86400"] });
    describe("in a container of the image", () => {
      containerTests(unpacked, shared);
      describe("over HTTP", () => blackBoxSuite(shared.url));
      describe("TLS", () => tlsTests(command));
      describe("signals to process 1", () => drainTests(command));
      modeTests(command, peers);
      containerdTests(image);
    });
  }
}
