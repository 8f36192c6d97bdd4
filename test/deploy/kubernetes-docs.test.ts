import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findApiServer } from "../../src/kubernetes/api-server.ts";
import {
  builtFrom,
  deploymentIn,
  hasKubectl,
  manifestsFolder,
  manifestsIn,
  usageFault,
} from "../support/kustomize.ts";
import { strangeFields } from "../support/manifest-fields.ts";
import { projectRoot, temporaryFolder } from "../support/service.ts";

const document = readFileSync(join(projectRoot, "docs/kubernetes.md"), "utf8");
const blocks = [...document.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block = ""]) => block);
const kustomizations = blocks.filter((block) => block.includes("kind: Kustomization\n"));

describe("docs/kubernetes.md", () => {
  test("names only folders that are there", () => {
    const folders = readdirSync(manifestsFolder);
    const named = [...document.matchAll(/deploy\/kubernetes\/([\w-]+)/g)];
    expect(named.length).toBeGreaterThan(5);
    for (const [, folder = ""] of named) expect(folders).toContain(folder);
  });

  test("shows YAML that parses", () => {
    expect(blocks.length).toBeGreaterThan(kustomizations.length);
    for (const manifest of blocks.flatMap(manifestsIn)) expect(manifest).toHaveProperty("kind");
  });

  test("shows a kubeconfig that the service takes, whose token and CA may rotate", () => {
    const [kubeconfig = ""] = blocks.filter((block) => block.includes("kind: Config\n"));
    using folder = temporaryFolder();
    const path = join(folder.path, "kubeconfig");
    writeFileSync(path, kubeconfig);
    expect(findApiServer({ KUBECONFIG: path })).toMatchObject({
      url: "https://karmada-apiserver.karmada-system.svc.cluster.local:5443",
      ca: { file: join(folder.path, "ca.crt") },
      user: { tokenFile: join(folder.path, "token"), token: undefined },
    });
  });

  test("shows kustomizations", () => expect(kustomizations.length).toBeGreaterThan(1));

  test.skipIf(!hasKubectl()).each(kustomizations)(
    "shows a kustomization that can be built, with flags that the service takes (%#)",
    (kustomization) => {
      const objects = builtFrom(kustomization, "../global-discovery-service/deploy/kubernetes");
      expect(objects.flatMap(strangeFields)).toEqual([]);
      const { container, args } = deploymentIn(objects);
      expect(usageFault(args)).toBeUndefined();
      expect(container.image).not.toContain("registry.invalid");
    },
  );
});
