import { expect, test } from "bun:test";
import { mcs } from "../../src/kubernetes/mcs.ts";
import { makeSlice, mcsLabels, mcsSlice, type SliceParts, selects } from "../support/slices.ts";

const labels = mcsLabels("aws-west", "global-router");

const owned: [string, SliceParts, { cluster: string; service: string }][] = [
  ["both labels", { labels }, { cluster: "aws-west", service: "global-router" }],
  [
    "a cluster with dots",
    { labels: mcsLabels("a.b.c", "web") },
    { cluster: "a.b.c", service: "web" },
  ],
  [
    "Cilium's, with a derived Service by another name",
    {
      name: "web-aws-west-6gxkd",
      labels: {
        ...mcsLabels("aws-west", "web"),
        "kubernetes.io/service-name": "derived-5ch4bq2kqn",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-mesh-controller.cilium.io",
      },
    },
    { cluster: "aws-west", service: "web" },
  ],
  [
    "Cloud Map's, whose own name begins with imported-",
    {
      name: "imported-9cfu7k5mkr-7xkkq",
      labels: {
        ...mcsLabels("aws-west", "web"),
        "kubernetes.io/service-name": "imported-9cfu7k5mkr",
        "endpointslice.kubernetes.io/managed-by": "aws-cloud-map-mcs-controller-for-k8s",
      },
    },
    { cluster: "aws-west", service: "web" },
  ],
  [
    "Lighthouse's, in the namespace that it was exported from",
    {
      name: "web-dynamo-aws-west",
      labels: {
        ...mcsLabels("aws-west", "web"),
        "endpointslice.kubernetes.io/managed-by": "lighthouse-agent.submariner.io",
        "lighthouse.submariner.io/sourceNamespace": "dynamo",
      },
    },
    { cluster: "aws-west", service: "web" },
  ],
  [
    "a Service that is really called derived-web",
    { labels: mcsLabels("aws-west", "derived-web") },
    { cluster: "aws-west", service: "derived-web" },
  ],
];

test.each(owned)("mcs: %s", (_, parts, owner) => {
  const slice = makeSlice(parts);
  expect(mcs.ownerOf(slice)).toEqual(owner);
  expect(selects(mcs.labelSelector, slice.metadata.labels ?? {})).toBe(true);
});

const notImported: [string, SliceParts][] = [
  ["no labels", {}],
  ["labels that are null", { labels: null }],
  ["no source cluster", { labels: { "multicluster.kubernetes.io/service-name": "web" } }],
  ["no Service", { labels: { "multicluster.kubernetes.io/source-cluster": "aws-west" } }],
  ["an empty source cluster", { labels: mcsLabels("", "web") }],
  ["an empty Service", { labels: mcsLabels("aws-west", "") }],
  [
    "Cilium's of a global Service, which MCS knows nothing of",
    {
      labels: {
        "kubernetes.io/service-name": "web",
        "multicluster.kubernetes.io/source-cluster": "aws-west",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-mesh-controller.cilium.io",
      },
    },
  ],
  [
    "Cloud Map's before it named the cluster",
    {
      labels: {
        "kubernetes.io/service-name": "imported-9cfu7k5mkr",
        "multicluster.kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "aws-cloud-map-mcs-controller-for-k8s",
      },
    },
  ],
  [
    "Karmada's",
    {
      name: "imported-aws-west-web-x7k2m",
      labels: { "kubernetes.io/service-name": "derived-web" },
    },
  ],
  [
    "Antrea's, mirrored from Endpoints of a merged Service",
    {
      name: "antrea-mc-web-x7k2m",
      labels: {
        "kubernetes.io/service-name": "antrea-mc-web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
      },
    },
  ],
  [
    "the cluster's own",
    {
      name: "web-x7k2m",
      labels: {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      },
    },
  ],
];

test.each(notImported)("mcs: not imported: %s", (_, parts) => {
  expect(mcs.ownerOf(makeSlice(parts))).toEqual({ leftOut: "not-imported" });
});

test("mcs: Lighthouse's copies in the broker's namespace count nowhere", () => {
  for (const sourceNamespace of ["dynamo", ""]) {
    const copy = mcsSlice("aws-west", "web", {
      namespace: "submariner-k8s-broker",
      labels: {
        ...mcsLabels("aws-west", "web"),
        "lighthouse.submariner.io/sourceNamespace": sourceNamespace,
      },
    });
    expect(mcs.ownerOf(copy)).toEqual({ leftOut: "other-namespace" });
  }
});

test("mcs: the API server is asked for slices with both labels and no others", () => {
  expect(mcs.labelSelector).toBe(
    "multicluster.kubernetes.io/service-name,multicluster.kubernetes.io/source-cluster",
  );
});
