import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { V1Deployment } from "@kubernetes/client-node";
import { YAML } from "bun";
import { readConfig } from "../../src/cli/config.ts";
import { parseCommandLine } from "../../src/cli/parse.ts";
import { messageOf, ServiceError } from "../../src/runtime/errors.ts";
import { projectRoot, temporaryFolder } from "./service.ts";

export const manifestsFolder = join(projectRoot, "deploy/kubernetes");

/** An object as a manifest has it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const stores = ["memory", "dynamodb"] as const;
const modes = ["registrations", "mcs", "karmada", "karmada-control-plane"] as const;

/** All that can be applied to a cluster: every store with every mode. */
export const variants = stores.flatMap((store) => modes.map((mode) => ({ store, mode })));

export type Variant = (typeof variants)[number];

/** Whether kubectl is here. Says so where it isn't. */
export function hasKubectl(): boolean {
  if (Bun.which("kubectl") !== null) return true;
  console.log("skipped: building the Kubernetes manifests needs kubectl (1.21 or later)");
  return false;
}

/** The objects that `kubectl apply -k` would create, from a folder with a kustomization. */
export function built(folder: string): Manifest[] {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["kubectl", "kustomize", folder]);
  const warnings = stderr.toString();
  if (exitCode !== 0 || warnings !== "") throw new Error(`kubectl kustomize: ${warnings}`);
  return manifestsIn(stdout.toString());
}

/** The objects of a kustomization's text, in which `root` stands for the folder of the manifests. */
export function builtFrom(kustomization: string, root: string): Manifest[] {
  using folder = temporaryFolder();
  // A kustomization takes no absolute paths.
  const text = kustomization.replaceAll(root, relative(folder.path, manifestsFolder));
  writeFileSync(join(folder.path, "kustomization.yaml"), text);
  return built(folder.path);
}

/** The objects of a variant, and what a kustomization may say more. */
export function builtVariant({ store, mode }: Variant, more = ""): Manifest[] {
  const components = mode === "registrations" ? "" : `components: [ROOT/${mode}]\n`;
  return builtFrom(`resources: [ROOT/${store}]\n${components}${more}`, "ROOT");
}

export function ofKind(objects: readonly Manifest[], kind: string): Manifest[] {
  return objects.filter((object) => object.kind === kind);
}

/** Whatever gives a right. */
export function rightsIn(objects: readonly Manifest[]): unknown[] {
  return objects.filter(({ kind }) => /Role(Binding)?$/.test(kind));
}

/** What gives the service account of a namespace the right to read slices, and nothing else. */
export function sliceReaderIn(namespace: string): unknown[] {
  const name = "global-discovery-service";
  const apiGroup = "rbac.authorization.k8s.io";
  const common = { apiVersion: `${apiGroup}/v1`, metadata: { name } };
  return [
    {
      ...common,
      kind: "ClusterRole",
      rules: [
        {
          apiGroups: ["discovery.k8s.io"],
          resources: ["endpointslices"],
          verbs: ["get", "list", "watch"],
        },
      ],
    },
    {
      ...common,
      kind: "ClusterRoleBinding",
      roleRef: { apiGroup, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    },
  ];
}

/** The documents of a YAML file. */
export function manifestsIn(text: string): Manifest[] {
  const documents = YAML.parse(text);
  // What is no manifest fails in the test that looks at it.
  return (Array.isArray(documents) ? documents : [documents]) as Manifest[];
}

/** The one Deployment among the objects, with its one container. */
export function deploymentIn(objects: readonly Manifest[]) {
  const [deployment, ...others] = ofKind(objects, "Deployment");
  if (deployment === undefined || others.length > 0) throw new Error("there is not one Deployment");
  // The kind says so, and `strangeFields` that its fields are those of the kind.
  const { spec } = deployment as unknown as V1Deployment;
  const pod = spec?.template.spec;
  const [container, ...sidecars] = pod?.containers ?? [];
  if (spec === undefined || pod == null || container === undefined || sidecars.length > 0) {
    throw new Error("the Deployment has not one container");
  }
  return { spec, pod, container, args: container.args ?? [] };
}

/** Why the service refuses flags, but for those that are no part of this version yet. */
export function usageFault(args: readonly string[]): string | undefined {
  try {
    readConfig(parseCommandLine(args));
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "startup") return undefined;
    return messageOf(error);
  }
}
