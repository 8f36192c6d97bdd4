import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { KubeApiServer, kubernetesPrograms } from "../support/kube-apiserver.ts";
import {
  built,
  builtVariant,
  deploymentIn,
  hasKubectl,
  type Manifest,
  manifestsFolder,
  ofKind,
  rightsIn,
  sliceReaderIn,
} from "../support/kustomize.ts";
import { strangeFields } from "../support/manifest-fields.ts";
import { endAll } from "../support/service.ts";

setDefaultTimeout(60_000);
afterAll(endAll);

const name = "global-discovery-service";
const isHere = hasKubectl();
const karmadaAccess = () => built(join(manifestsFolder, "karmada-access"));

describe.skipIf(!isHere)("the manifests", () => {
  test("make a user with the same right in the Karmada control plane", () => {
    const objects = karmadaAccess();
    expect(objects.flatMap(strangeFields)).toEqual([]);
    expect(rightsIn(objects)).toEqual(sliceReaderIn("karmada-system"));
    expect(objects).toMatchObject([
      { kind: "ServiceAccount", metadata: { name, namespace: "karmada-system" } },
      { kind: "ClusterRole" },
      { kind: "ClusterRoleBinding" },
      {
        kind: "Secret",
        metadata: {
          namespace: "karmada-system",
          annotations: { "kubernetes.io/service-account.name": name },
        },
        type: "kubernetes.io/service-account-token",
      },
    ]);
  });

  test("follow a kustomization that sets the namespace and the image", () => {
    const image = `registry.invalid/${name}`;
    const objects = builtVariant(
      { store: "dynamodb", mode: "mcs" },
      `namespace: elsewhere\nimages: [{ name: ${image}, newName: a.example/b, newTag: "1" }]\n`,
    );
    expect(deploymentIn(objects).container.image).toBe("a.example/b:1");
    expect(rightsIn(objects)).toEqual(sliceReaderIn("elsewhere"));
    expect(ofKind(objects, "Namespace")).toMatchObject([{ metadata: { name: "elsewhere" } }]);
    const clusterWide = ["Namespace", "ClusterRole", "ClusterRoleBinding"];
    const namespaced = objects.filter(({ kind }) => !clusterWide.includes(kind));
    expect(namespaced.map(({ metadata }) => metadata.namespace)).toEqual(
      ["ServiceAccount", "Service", "Deployment", "PodDisruptionBudget"].map(() => "elsewhere"),
    );
  });
});

const programs = kubernetesPrograms();

test.skipIf(programs === undefined || !isHere)(
  "an API server takes the manifests, and grants their service account no more than it needs",
  async () => {
    if (programs === undefined) return;
    await using server = await KubeApiServer.start(programs);
    // Kubernetes 1.20 has neither the sleep action nor policy/v1, so the DynamoDB store's are not here.
    for (const object of builtVariant({ store: "memory", mode: "mcs" })) {
      await server.send("POST", pathOf(object), object);
    }
    await server.send("POST", "/api/v1/namespaces", { metadata: { name: "karmada-system" } });
    const more = [
      ...ofKind(builtVariant({ store: "memory", mode: "karmada-control-plane" }), "Deployment"),
      ...karmadaAccess(),
    ];
    for (const object of more) {
      const renamed = { ...object, metadata: { ...object.metadata, name: "another" } };
      await server.send("POST", `${pathOf(object)}?dryRun=All`, renamed);
    }

    const may = async (verb: string, group: string, resource: string) => {
      const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
      const review = await server.send("POST", path, {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: {
          user: `system:serviceaccount:global-discovery:${name}`,
          groups: ["system:authenticated", "system:serviceaccounts:global-discovery"],
          resourceAttributes: { verb, group, resource },
        },
      });
      // The form is authorization.k8s.io/v1's.
      return (review as { readonly status: { readonly allowed: boolean } }).status.allowed;
    };
    for (const verb of ["get", "list", "watch"]) {
      expect(await may(verb, "discovery.k8s.io", "endpointslices")).toBe(true);
      expect(await may(verb, "", "secrets")).toBe(false);
      expect(await may(verb, "", "services")).toBe(false);
    }
    for (const verb of ["create", "update", "patch", "delete"]) {
      expect(await may(verb, "discovery.k8s.io", "endpointslices")).toBe(false);
    }
  },
);

/** Where an object of its kind is created. */
function pathOf({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const group = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const folder = namespace === undefined ? "" : `/namespaces/${namespace}`;
  return `${group}${folder}/${kind.toLowerCase()}s`;
}
