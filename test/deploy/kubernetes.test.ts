import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { V1Probe } from "@kubernetes/client-node";
import { YAML } from "bun";
import { runConfig } from "../../packaging/image.ts";
import { flags } from "../../src/cli/flags.ts";
import { parseCommandLine } from "../../src/cli/parse.ts";
import { limits } from "../../src/runtime/limits.ts";
import {
  builtVariant,
  deploymentIn,
  hasKubectl,
  manifestsFolder,
  manifestsIn,
  ofKind,
  rightsIn,
  sliceReaderIn,
  usageFault,
  variants,
} from "../support/kustomize.ts";
import { strangeFields } from "../support/manifest-fields.ts";
import { projectRoot } from "../support/service.ts";

test.each(readdirSync(manifestsFolder))("deploy/kubernetes/%s names what is there", (name) => {
  const folder = join(manifestsFolder, name);
  const text = readFileSync(join(folder, "kustomization.yaml"), "utf8");
  const { resources = [] }: { resources?: string[] } = Object(YAML.parse(text));
  for (const resource of resources) expect(existsSync(join(folder, resource))).toBe(true);
  for (const file of readdirSync(folder)) {
    if (file === "kustomization.yaml") continue;
    expect(resources).toContain(file);
    const manifests = manifestsIn(readFileSync(join(folder, file), "utf8"));
    for (const manifest of manifests) expect(manifest).toHaveProperty("metadata.name");
  }
});

for (const variant of hasKubectl() ? variants : []) {
  const { store, mode } = variant;
  describe(`the manifests for ${store} with ${mode}`, () => {
    const objects = builtVariant(variant);
    const { spec, pod, container, args } = deploymentIn(objects);
    const { given } = parseCommandLine(args);
    const sleepSecs = container.lifecycle?.preStop?.sleep?.seconds ?? 0;

    test("have only fields that Kubernetes knows", () => {
      expect(objects.flatMap(strangeFields)).toEqual([]);
    });

    test("give flags that the service takes", () => {
      expect(usageFault(args)).toBeUndefined();
      expect(given.get("registration-storage") ?? ["memory"]).toEqual([store]);
      expect(given.get("pool-discovery") ?? ["registrations"]).toEqual([
        mode === "karmada-control-plane" ? "karmada" : mode,
      ]);
    });

    test("run as a user without any rights, on a root that can't be written", () => {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 65532,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    });

    test("agree on the user and the port with the image", () => {
      const { runAsUser, runAsGroup } = pod.securityContext ?? {};
      expect(`${runAsUser}:${runAsGroup}`).toBe(runConfig.User);
      const ports = container.ports?.map(({ containerPort }) => `${containerPort}/tcp`);
      expect(ports).toEqual(Object.keys(runConfig.ExposedPorts));
    });

    test("agree on the port", () => {
      const [port] = container.ports ?? [];
      expect(given.get("listen")).toEqual([{ host: "0.0.0.0", port: port?.containerPort }]);
      expect(ofKind(objects, "Service")).toMatchObject([
        { spec: { ports: [{ port: port?.containerPort, targetPort: port?.name }] } },
      ]);
      const { startupProbe, livenessProbe, readinessProbe } = container;
      for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
        expect(probe?.httpGet).toEqual({ path: "/healthz", port: "http" });
      }
    });

    test("tell Prometheus where the metrics are", () => {
      expect(spec.template.metadata?.annotations).toEqual({
        "prometheus.io/scrape": "true",
        "prometheus.io/port": String(container.ports?.[0]?.containerPort),
        "prometheus.io/path": "/metrics",
      });
    });

    test("select the pods that they make", () => {
      const labels = { "app.kubernetes.io/name": "global-discovery-service" };
      expect(spec.template.metadata?.labels).toEqual(labels);
      expect(spec.selector).toEqual({ matchLabels: labels });
      expect(ofKind(objects, "Service")).toMatchObject([{ spec: { selector: labels } }]);
      for (const { labelSelector } of pod.topologySpreadConstraints ?? []) {
        expect(labelSelector).toEqual({ matchLabels: labels });
      }
    });

    test("give a token and the right to read slices only where this cluster's are read", () => {
      const reads = mode === "mcs" || mode === "karmada";
      expect(pod.automountServiceAccountToken).toBe(reads);
      expect(pod.serviceAccountName).toBe("global-discovery-service");
      expect(ofKind(objects, "ServiceAccount")).toHaveLength(1);
      expect(rightsIn(objects)).toEqual(reads ? sliceReaderIn("global-discovery") : []);
    });

    test("restart no pod while it waits for its table or an API server", () => {
      expect(secondsUntilFailure(container.startupProbe)).toBeGreaterThanOrEqual(3600);
      expect(secondsUntilFailure(container.livenessProbe)).toBeGreaterThanOrEqual(60);
    });

    test("give a pod the time to finish what it answers", () => {
      const drainSecs = limits.drainMs / 1000;
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(sleepSecs + drainSecs);
    });

    if (store === "memory") {
      test("never run two replicas, with a part of the pools each", () => {
        expect(spec.replicas).toBe(1);
        expect(spec.strategy).toEqual({ type: "Recreate" });
        expect(ofKind(objects, "PodDisruptionBudget")).toEqual([]);
      });
    }

    if (store === "dynamodb") {
      test("keep replicas serving during an update and a drain", () => {
        expect(spec.replicas).toBeGreaterThan(1);
        expect(spec.strategy).toMatchObject({
          type: "RollingUpdate",
          rollingUpdate: { maxUnavailable: 0 },
        });
        expect(sleepSecs).toBeGreaterThan(0);
        const leaseSecs = Number(flags["lease-duration-secs"].default);
        expect(spec.minReadySeconds).toBeGreaterThan(leaseSecs);
        expect(ofKind(objects, "PodDisruptionBudget")).toMatchObject([
          { spec: { maxUnavailable: 1, selector: spec.selector } },
        ]);
      });
    }

    if (store === "dynamodb") {
      test("name the table that is made, and that may be read", () => {
        const [table] = given.get("dynamodb-table") ?? [];
        const deployed = (name: string) => readFileSync(join(projectRoot, "deploy", name), "utf8");
        expect(YAML.parse(deployed("dynamodb-table.yaml"))).toMatchObject({
          Parameters: { TableName: { Default: table } },
        });
        expect(deployed("iam-policy.json")).toContain(`:table/${table}"`);
      });
    }

    if (mode === "karmada-control-plane") {
      test("mount the kubeconfig that KUBECONFIG names", () => {
        const [mount] = container.volumeMounts ?? [];
        const value = `${mount?.mountPath}/kubeconfig`;
        expect(container.env).toContainEqual({ name: "KUBECONFIG", value });
        // A single file would never change.
        expect(mount?.subPath).toBeUndefined();
        expect(pod.volumes).toMatchObject([{ name: mount?.name, secret: {} }]);
      });
    }
  });
}

/** How long a probe has to fail until something is done about it. */
function secondsUntilFailure(probe: V1Probe | undefined): number {
  return (probe?.periodSeconds ?? 0) * (probe?.failureThreshold ?? 0);
}
