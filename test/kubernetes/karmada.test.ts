import { expect, test } from "bun:test";
import fc from "fast-check";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { karmadaSlice, makeSlice, mcsLabels, type SliceParts, selects } from "../support/slices.ts";

const SERVICE = "kubernetes.io/service-name";
const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const DISPATCHER = "endpointslice-dispatch-controller.karmada.io";
const PROVIDER = "endpointslice.karmada.io/provision-cluster";

/** A slice's name and its Service's label, and what they say. */
function exported(name: string, label: string) {
  const slice = makeSlice({ name, labels: { [SERVICE]: label } });
  return karmada.ownerOf(slice);
}

test.each([
  ["imported-aws-west-web-x7k2m", "derived-web", "aws-west", "web"],
  ["imported-c-web-bcdfg", "derived-web", "c", "web"],
  // Dashes everywhere.
  ["imported-a-b-c-d-e-f-hjklm", "derived-d-e-f", "a-b-c", "d-e-f"],
  ["imported-web-web-web-24567", "derived-web", "web-web", "web"],
  ["imported-a--b-web-npqrs", "derived-web", "a--b", "web"],
  // One derived- is stripped, not two.
  ["imported-aws-derived-x-tvwxz", "derived-derived-x", "aws", "derived-x"],
  // A slice whose Service's name ends like a generated one.
  ["imported-aws-web-x7k2m-89bcd", "derived-web-x7k2m", "aws", "web-x7k2m"],
  // A cluster whose name looks like the start of a copy of a copy.
  ["imported-imported-aws-web-x7k2m", "derived-web", "imported-aws", "web"],
  [`imported-${"a".repeat(48)}-web-x7k2m`, "derived-web", "a".repeat(48), "web"],
  ["imported-0-0-x7k2m", "derived-0", "0", "0"],
])("karmada: %s of %s is from %s", (name, label, cluster, service) => {
  expect(exported(name, label)).toEqual({ cluster, service });
});

test("karmada: a generated name keeps 58 characters of the Service and its dash", () => {
  const service = (length: number) => "s".repeat(length - 2).concat("-e");
  for (const length of [55, 56, 57, 58, 59, 63]) {
    const name = `imported-aws-${`${service(length)}-`.slice(0, 58)}x7k2m`;
    expect(exported(name, `derived-${service(length)}`)).toEqual({
      cluster: "aws",
      service: service(length),
    });
  }
});

test.each([
  // Not five characters, or not ones that are generated.
  ["imported-aws-west-web-x7k2", "derived-web"],
  ["imported-aws-west-web-x7k2mm", "derived-web"],
  ["imported-aws-west-web-aeiou", "derived-web"],
  ["imported-aws-west-web-x7k1m", "derived-web"],
  ["imported-aws-west-web-X7K2M", "derived-web"],
  ["imported-aws-west-web-x7k.m", "derived-web"],
  // Not the Service's name, or only its end.
  ["imported-aws-west-manual", "derived-web"],
  ["imported-aws-northweb-x7k2m", "derived-web"],
  ["imported-aws-web-x7k2m-extra", "derived-web"],
  // The Service's name is no pattern.
  ["imported-aws-wxb-x7k2m", "derived-w.b"],
  // A copy of a copy, of the Service that the first copy was derived for.
  ["imported-aws-imported-gcp-web-x7k2m", "derived-derived-web"],
])("karmada: %s of %s is a hand-made name", (name, label) => {
  expect(exported(name, label)).toEqual({
    handMade: { name: name.slice("imported-".length), service: label.slice("derived-".length) },
  });
});

test.each([
  // Each ends as a generated name does, so no cluster that is registered is ever looked for in it.
  ["imported-web-x7k2m", "derived-web"],
  ["imported--web-x7k2m", "derived-web"],
  ["imported-aws--web-x7k2m", "derived-web"],
  ["imported--aws-web-x7k2m", "derived-web"],
  ["imported-a.b-web-x7k2m", "derived-web"],
  [`imported-${"a".repeat(49)}-web-x7k2m`, "derived-web"],
])("karmada: whose %s of %s is can't be told", (name, label) => {
  expect(exported(name, label)).toEqual({ leftOut: "unknown-cluster" });
});

test("karmada: a generated name ends in no other characters than the API server uses", () => {
  for (const character of "aeiouy013A-.") {
    expect(exported(`imported-aws-web-x7k2${character}`, "derived-web")).toContainKey("handMade");
  }
  for (const character of "bcdfghjklmnpqrstvwxz2456789") {
    expect(exported(`imported-aws-web-x7k2${character}`, "derived-web")).toContainKey("cluster");
  }
});

test("karmada: however clusters, Services and slices are called, a generated name is told apart", () => {
  const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,46}[a-z0-9])?$/);
  const end = fc.stringMatching(/^[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  fc.assert(
    fc.property(label, label, end, (cluster, service, random) => {
      const slice = karmadaSlice(cluster, service, { original: `${service}-${random}` });
      expect(karmada.ownerOf(slice)).toEqual({ cluster, service });
    }),
  );
});

const dispatched: SliceParts = {
  name: "aws-west-web-x7k2m",
  labels: { [SERVICE]: "web", [MANAGED_BY]: DISPATCHER },
  annotations: { [PROVIDER]: "aws-west" },
};

test("karmada: a MultiClusterService's slice says its cluster and its Service as they stand", () => {
  expect(karmada.ownerOf(makeSlice(dispatched))).toEqual({ cluster: "aws-west", service: "web" });
  const odd = makeSlice({
    name: "imported-gcp-web-x7k2m",
    labels: { [SERVICE]: "derived-web", [MANAGED_BY]: DISPATCHER },
    annotations: { [PROVIDER]: "a.b/c" },
  });
  expect(karmada.ownerOf(odd)).toEqual({ cluster: "a.b/c", service: "derived-web" });
});

test("karmada: a MultiClusterService's slice without a provider has no owner", () => {
  for (const annotations of [undefined, null, {}, { [PROVIDER]: "" }]) {
    const { name, labels } = dispatched;
    const slice = makeSlice({
      name: name ?? "",
      labels: labels ?? {},
      ...(annotations === undefined ? {} : { annotations }),
    });
    expect(karmada.ownerOf(slice)).toEqual({ leftOut: "unknown-cluster" });
  }
});

const notImported: [string, SliceParts][] = [
  ["no labels", { name: "imported-aws-web-x7k2m" }],
  ["an empty Service", { name: "imported-aws-web-x7k2m", labels: { [SERVICE]: "" } }],
  ["derived- of nothing", { name: "imported-aws--x7k2m", labels: { [SERVICE]: "derived-" } }],
  [
    "a Service that is not derived",
    { name: "imported-aws-web-x7k2m", labels: { [SERVICE]: "web" } },
  ],
  ["a name without imported-", { name: "aws-web-x7k2m", labels: { [SERVICE]: "derived-web" } }],
  ["imported without a dash", { name: "imported", labels: { [SERVICE]: "derived-web" } }],
  [
    "the cluster's own, of a Service called derived-web",
    {
      name: "derived-web-x7k2m",
      labels: { [SERVICE]: "derived-web", [MANAGED_BY]: "endpointslice-controller.k8s.io" },
    },
  ],
  [
    "the API server's own",
    { name: "kubernetes", namespace: "default", labels: { [SERVICE]: "kubernetes" } },
  ],
  [
    "Cloud Map's",
    {
      name: "imported-9cfu7k5mkr-7xkkq",
      labels: {
        [SERVICE]: "imported-9cfu7k5mkr",
        "multicluster.kubernetes.io/service-name": "web",
        [MANAGED_BY]: "aws-cloud-map-mcs-controller-for-k8s",
      },
    },
  ],
  [
    "Cilium's, whose Service is called derived-…",
    {
      name: "web-aws-6gxkd",
      labels: { ...mcsLabels("aws", "web"), [SERVICE]: "derived-5ch4bq2kqn" },
    },
  ],
  [
    "anything with the MCS label, though all else is Karmada's",
    {
      name: "imported-aws-web-x7k2m",
      labels: { ...mcsLabels("aws", "web"), [SERVICE]: "derived-web" },
    },
  ],
  [
    "anything with an empty MCS label",
    {
      name: "imported-aws-web-x7k2m",
      labels: { ...mcsLabels("", "web"), [SERVICE]: "derived-web" },
    },
  ],
  [
    "a dispatched one with the MCS label",
    { ...dispatched, labels: { ...dispatched.labels, ...mcsLabels("aws-west", "web") } },
  ],
  [
    "one whose manager only sounds like the dispatcher",
    { ...dispatched, labels: { [SERVICE]: "web", [MANAGED_BY]: `${DISPATCHER}.x` } },
  ],
  [
    "the original in the cluster that provides it",
    {
      name: "web-x7k2m",
      labels: { [SERVICE]: "web", [MANAGED_BY]: "endpointslice-controller.k8s.io" },
    },
  ],
  [
    "one that only its importer's work names",
    {
      name: "web-x7k2m",
      labels: { [SERVICE]: "web", "work.karmada.io/namespace": "karmada-es-aws" },
      annotations: { "work.karmada.io/namespace": "karmada-es-aws" },
    },
  ],
  [
    "Lighthouse's without a source cluster",
    {
      name: "imported-aws-web-x7k2m",
      labels: { "multicluster.kubernetes.io/service-name": "derived-web" },
    },
  ],
];

test.each(notImported)("karmada: not imported: %s", (_, parts) => {
  expect(karmada.ownerOf(makeSlice(parts))).toEqual({ leftOut: "not-imported" });
});

test("karmada: the work that a slice came by is never read as its source", () => {
  const annotations = { "work.karmada.io/namespace": "karmada-es-gcp" };
  const labels = { [SERVICE]: "derived-web", "work.karmada.io/namespace": "karmada-es-gcp" };
  expect(karmada.ownerOf(karmadaSlice("aws", "web", { labels, annotations }))).toEqual({
    cluster: "aws",
    service: "web",
  });
});

test("karmada: the API server is asked for all that Karmada copies, and not for a cluster's own", () => {
  expect(karmada.labelSelector).toBe(
    "kubernetes.io/service-name,!multicluster.kubernetes.io/source-cluster," +
      "endpointslice.kubernetes.io/managed-by notin " +
      "(endpointslice-controller.k8s.io,endpointslicemirroring-controller.k8s.io)",
  );
  const picks = (labels: Record<string, string>) => selects(karmada.labelSelector, labels);
  expect(picks({ [SERVICE]: "derived-web" })).toBe(true);
  expect(picks({ [SERVICE]: "web", [MANAGED_BY]: DISPATCHER })).toBe(true);
  for (const controller of ["endpointslice", "endpointslicemirroring"]) {
    const own = { [SERVICE]: "web", [MANAGED_BY]: `${controller}-controller.k8s.io` };
    expect(picks(own)).toBe(false);
  }
  expect(picks({ [SERVICE]: "derived-web", ...mcsLabels("aws", "web") })).toBe(false);
});
