import { describe, expect, test } from "bun:test";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { OwnershipRule } from "../../src/kubernetes/ownership.ts";
import type { ServiceKey } from "../../src/kubernetes/services.ts";
import type { EndpointPort } from "../../src/kubernetes/slice-api.ts";
import { SliceIndex } from "../../src/kubernetes/slices.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { endpointsAt, karmadaSlice, makeSlice, mcsSlice, podAt } from "../support/slices.ts";

const RELAYS: ServiceKey = { cluster: "aws", namespace: "dynamo", service: "x-pool-relay" };
const ROUTERS: ServiceKey = { cluster: "aws", namespace: "dynamo", service: "global-router" };

function setUp(rule: OwnershipRule = mcs) {
  const { log, lines } = recordedLog();
  const told: string[] = [];
  const index: SliceIndex = new SliceIndex({
    rule,
    routers: { namespace: "dynamo", service: "global-router" },
    // What the listener finds at that moment is part of what it is told.
    changed: (key) => told.push(`${key.cluster}/${key.service}: ${addresses(key)}`),
    log,
  });
  const addresses = (key: ServiceKey) =>
    index.endpointsOf(key).flatMap((endpoints) => endpoints.addresses);
  /** What the listener was told since the last time. */
  const news = () => told.splice(0);
  return { index, addresses, news, lines };
}

const relays = (...at: string[]) =>
  mcsSlice("aws", RELAYS.service, { endpoints: endpointsAt(...at) });

describe("what counts of a slice", () => {
  test("ready that is missing or null is true, and ready alone decides", () => {
    const { index, addresses } = setUp();
    const conditions = [
      undefined,
      null,
      {},
      { ready: null },
      { ready: true },
      { ready: true, serving: false, terminating: true },
      { ready: false },
      { ready: false, serving: true, terminating: true },
    ];
    const endpoints = conditions.map((condition, at) => ({
      addresses: [`10.0.0.${at}`],
      ...(condition === undefined ? {} : { conditions: condition }),
    }));
    index.put(mcsSlice("aws", RELAYS.service, { endpoints }));
    expect(addresses(RELAYS)).toEqual([0, 1, 2, 3, 4, 5].map((at) => `10.0.0.${at}`));
  });

  test("endpoints and ports may be null or missing", () => {
    const { index } = setUp();
    for (const parts of [{}, { endpoints: null, ports: null }, { endpoints: [], ports: [] }]) {
      index.put(mcsSlice("aws", RELAYS.service, parts));
      expect(index.endpointsOf(RELAYS)).toMatchObject([{ addresses: [], pods: [], ports: [] }]);
    }
  });

  test("only the first address has a meaning, and only if it is one", () => {
    const { index, addresses } = setUp();
    const lists = [["10.0.0.1", "10.0.0.2"], ["web", "10.0.0.3"], ["2001:DB8::1"], []];
    index.put(
      mcsSlice("aws", RELAYS.service, { endpoints: lists.map((list) => ({ addresses: list })) }),
    );
    expect(addresses(RELAYS)).toEqual(["10.0.0.1", "2001:db8::1"]);
  });

  test("a port without a number is no port", () => {
    const { index } = setUp();
    const ports = [{ name: "a", port: null }, { name: "b" }, { port: 80, appProtocol: null }];
    index.put(mcsSlice("aws", RELAYS.service, { ports }));
    expect(index.endpointsOf(RELAYS)[0]?.ports).toEqual([
      { name: "", port: 80, appProtocol: undefined },
    ]);
  });

  test("a router's pod is its target where that is a Pod, else its hostname, else its address", () => {
    const { index } = setUp();
    const endpoints = [
      podAt("router-0", "10.0.0.1"),
      { ...podAt("router-1", "10.0.0.2"), hostname: "host" },
      { addresses: ["10.0.0.3"], targetRef: { kind: "Service", name: "s" }, hostname: "host" },
      { addresses: ["10.0.0.4"], targetRef: { kind: "Pod" }, hostname: "" },
      { addresses: ["2001:DB8::1"], targetRef: null, hostname: null },
    ];
    index.put(mcsSlice("aws", ROUTERS.service, { endpoints }));
    expect(index.endpointsOf(ROUTERS)[0]?.pods).toEqual([
      "router-0",
      "router-1",
      "host",
      "10.0.0.4",
      "2001:db8::1",
    ]);
  });
});

describe("the index", () => {
  test("adds up several slices of one Service, each with its own ports", () => {
    const { index } = setUp();
    const slice = (name: string, address: string, port: number) =>
      mcsSlice("aws", RELAYS.service, {
        name,
        endpoints: endpointsAt(address),
        ports: [{ name: "http", port }],
      });
    index.put(slice("one", "10.0.0.1", 8000));
    index.put(slice("two", "10.0.0.2", 9000));
    expect(
      index.endpointsOf(RELAYS).map(({ addresses, ports }) => [...addresses, ports[0]?.port]),
    ).toEqual([
      ["10.0.0.1", 8000],
      ["10.0.0.2", 9000],
    ]);
  });

  test("keeps slices of one name in different namespaces apart", () => {
    const { index, addresses } = setUp();
    index.put(relays("10.0.0.1"));
    const elsewhere = { namespace: "other", endpoints: endpointsAt("10.0.0.2") };
    index.put(mcsSlice("aws", RELAYS.service, elsewhere));
    expect(addresses(RELAYS)).toEqual(["10.0.0.1"]);
    expect(addresses({ ...RELAYS, namespace: "other" })).toEqual(["10.0.0.2"]);
    index.remove(mcsSlice("aws", RELAYS.service, elsewhere));
    expect(addresses(RELAYS)).toEqual(["10.0.0.1"]);
  });

  test("tells its listener of changes, and of nothing else", () => {
    const { index, news } = setUp();
    index.put(relays("10.0.0.1"));
    expect(news()).toEqual(["aws/x-pool-relay: 10.0.0.1"]);
    index.put(relays("10.0.0.1"));
    index.put(mcsSlice("aws", "unrelated", { endpoints: endpointsAt("10.0.0.9") }));
    index.put(
      mcsSlice("aws", RELAYS.service, {
        endpoints: [
          ...endpointsAt("10.0.0.1"),
          { addresses: ["10.0.0.2"], conditions: { ready: false } },
        ],
      }),
    );
    expect(news()).toEqual([]);
    index.put(relays("10.0.0.1", "10.0.0.2"));
    expect(news()).toEqual(["aws/x-pool-relay: 10.0.0.1,10.0.0.2"]);
    index.put({ ...relays("10.0.0.1", "10.0.0.2"), ports: [{ port: 80 }] });
    expect(news()).toHaveLength(1);
    index.remove(relays());
    expect(news()).toEqual(["aws/x-pool-relay: "]);
    index.remove(relays());
    expect(news()).toEqual([]);
  });

  test("tells its listener of a change of nothing but a port or a pod", () => {
    const { index, news } = setUp();
    const put = (port: EndpointPort, pod = "p") => {
      const endpoints = [podAt(pod, "10.0.0.1")];
      index.put(mcsSlice("aws", ROUTERS.service, { endpoints, ports: [port] }));
      return news().length;
    };
    expect(put({ name: "http", port: 80, appProtocol: "http" })).toBe(1);
    expect(put({ name: "http", port: 81, appProtocol: "http" })).toBe(1);
    expect(put({ name: "https", port: 81, appProtocol: "http" })).toBe(1);
    expect(put({ name: "https", port: 81, appProtocol: "https" })).toBe(1);
    expect(put({ name: "https", port: 81, appProtocol: "https" }, "q")).toBe(1);
    expect(put({ name: "https", port: 81, appProtocol: "https" }, "q")).toBe(0);
  });

  test("a list is taken in at once, and only what differs is told", () => {
    const { index, news } = setUp();
    const of = (service: string, name: string, at: string) =>
      mcsSlice("aws", service, { name, endpoints: endpointsAt(at) });
    index.replace([
      of("a-pool-relay", "a1", "10.0.0.1"),
      of("b-pool-relay", "b1", "10.0.0.2"),
      of("c-pool-relay", "c1", "10.0.0.3"),
    ]);
    expect(news()).toHaveLength(3);
    // One slice in place of another of the same Service is no moment without either.
    index.replace([
      of("a-pool-relay", "a1", "10.0.0.1"),
      of("b-pool-relay", "b2", "10.0.0.4"),
      of("d-pool-relay", "d1", "10.0.0.5"),
    ]);
    expect(news().sort()).toEqual([
      "aws/b-pool-relay: 10.0.0.4",
      "aws/c-pool-relay: ",
      "aws/d-pool-relay: 10.0.0.5",
    ]);
    index.replace([]);
    expect(news()).toHaveLength(3);
    expect(index.counts().used).toBe(0);
  });

  test("a slice that changes labels leaves its old owner first", () => {
    const { index, addresses, news } = setUp();
    const of = (cluster: string, service: string) =>
      mcsSlice(cluster, service, { name: "one", endpoints: endpointsAt("10.0.0.1") });
    index.put(of("gcp", RELAYS.service));
    news();
    index.put(of("aws", RELAYS.service));
    expect(news()).toEqual(["gcp/x-pool-relay: ", "aws/x-pool-relay: 10.0.0.1"]);
    index.put(of("aws", "x-frontend"));
    expect(news()).toEqual(["aws/x-pool-relay: ", "aws/x-frontend: 10.0.0.1"]);
    index.put(makeSlice({ name: "one" }));
    expect(news()).toEqual(["aws/x-frontend: "]);
    expect(addresses(RELAYS)).toEqual([]);
  });

  test("Services whose parts could be taken for each other's are kept apart", () => {
    const { index, addresses } = setUp(karmada);
    const dispatched = (cluster: string) =>
      makeSlice({
        name: "one",
        namespace: "b",
        labels: {
          "kubernetes.io/service-name": "x-pool-relay",
          "endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io",
        },
        annotations: { "endpointslice.karmada.io/provision-cluster": cluster },
        endpoints: endpointsAt("10.0.0.1"),
      });
    index.put(dispatched("a/b"));
    expect(addresses({ cluster: "a", namespace: "b/b", service: "x-pool-relay" })).toEqual([]);
    expect(addresses({ cluster: "a/b", namespace: "b", service: "x-pool-relay" })).toHaveLength(1);
  });
});

describe("slices that are left out", () => {
  test("are counted by reason, with up to ten names, for as long as they are left out", () => {
    const { index } = setUp();
    const foreign = Array.from({ length: 12 }, (_, at) => makeSlice({ name: `n${at}` }));
    index.replace([
      ...foreign,
      mcsSlice("aws", "unrelated"),
      mcsSlice("aws", ROUTERS.service, { namespace: "other" }),
      mcsSlice("aws", RELAYS.service, { addressType: "FQDN" }),
      relays("10.0.0.1"),
    ]);
    expect(index.counts()).toEqual({
      used: 1,
      leftOut: {
        "not-imported": {
          count: 12,
          names: foreign.slice(0, 10).map((s) => `dynamo/${s.metadata.name}`),
        },
        "other-namespace": { count: 0, names: [] },
        "unknown-cluster": { count: 0, names: [] },
        // The same name as the one that counts, which came later.
        fqdn: { count: 0, names: [] },
        "other-service": {
          count: 2,
          names: ["dynamo/unrelated-aws", "other/global-router-aws"],
        },
      },
    });
    index.put(mcsSlice("aws", RELAYS.service, { addressType: "FQDN" }));
    for (const slice of foreign.slice(0, 4)) index.put(slice);
    for (const slice of foreign.slice(0, 3)) index.remove(slice);
    const { used, leftOut } = index.counts();
    expect(used).toBe(0);
    expect(leftOut.fqdn).toEqual({ count: 1, names: ["dynamo/x-pool-relay-aws"] });
    expect(leftOut["not-imported"].count).toBe(9);
    expect(leftOut["not-imported"].names).toHaveLength(9);
    expect(leftOut["not-imported"].names[0]).toBe("dynamo/n3");
  });

  test("are logged once where they seem to be meant for us, and not at all where they don't", () => {
    const { index, lines } = setUp(karmada);
    const unknown = (name: string) => karmadaSlice("nowhere", "x-pool-relay", { original: name });
    index.replace([
      unknown("manual"),
      makeSlice({ name: "own", labels: { "kubernetes.io/service-name": "own" } }),
      karmadaSlice("aws", "unrelated"),
      karmadaSlice("aws", "x-pool-relay", { addressType: "FQDN" }),
    ]);
    const warnings = () =>
      lines.map(({ level, fields }) => `${level} ${fields.count} ${fields.slices}`);
    expect(warnings()).toEqual([
      "warn 1 dynamo/imported-nowhere-manual",
      "warn 1 dynamo/imported-aws-x-pool-relay-x7k2m",
    ]);
    lines.length = 0;
    // Neither the next list, nor a cluster that comes and goes, makes it news.
    index.replace([unknown("manual")]);
    index.addPool("nowhere");
    index.removePool("nowhere");
    index.put(unknown("manual"));
    expect(warnings()).toEqual([]);
    index.put(unknown("other"));
    expect(warnings()).toEqual(["warn 1 dynamo/imported-nowhere-other"]);
    index.remove(unknown("other"));
    index.put(unknown("other"));
    expect(warnings()).toHaveLength(2);
  });

  test("are logged in one line when there are many", () => {
    const { index, lines } = setUp(karmada);
    const many = Array.from({ length: 1000 }, (_, at) =>
      karmadaSlice("nowhere", "x-pool-relay", { original: `manual-${at}` }),
    );
    index.replace(many);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.fields.count).toBe(1000);
    expect(String(lines[0]?.fields.slices).split(",")).toHaveLength(10);
    expect(index.counts().leftOut["unknown-cluster"].count).toBe(1000);
  });
});

describe("hand-made names", () => {
  const handMade = (name: string) =>
    karmadaSlice("", "x-pool-relay", {
      name: `imported-${name}`,
      endpoints: endpointsAt("10.0.0.1"),
    });
  const owner = (index: SliceIndex) =>
    ["a", "a-b", "a-b-c", "b"].filter(
      (cluster) => index.endpointsOf({ ...RELAYS, cluster }).length > 0,
    );

  test("are matched against the clusters of live pools, the longest first, and move with them", () => {
    const { index, news } = setUp(karmada);
    index.put(handMade("a-b-c-d"));
    expect(owner(index)).toEqual([]);
    expect(index.counts().leftOut["unknown-cluster"].count).toBe(1);
    index.addPool("a-b");
    expect(owner(index)).toEqual(["a-b"]);
    expect(index.counts()).toMatchObject({ used: 1, leftOut: { "unknown-cluster": { count: 0 } } });
    index.addPool("a");
    expect(owner(index)).toEqual(["a-b"]);
    news();
    index.addPool("a-b-c");
    expect(owner(index)).toEqual(["a-b-c"]);
    expect(news()).toEqual(["a-b/x-pool-relay: ", "a-b-c/x-pool-relay: 10.0.0.1"]);
    // More pools of one cluster change nothing until the last has gone.
    index.addPool("a-b-c");
    index.removePool("a-b-c");
    expect(news()).toEqual([]);
    index.removePool("a-b-c");
    index.removePool("a-b");
    expect(owner(index)).toEqual(["a"]);
    index.removePool("a");
    expect(owner(index)).toEqual([]);
  });

  test.each([
    ["a", []],
    ["a-", []],
    ["a-x", ["a"]],
    ["ab-x", []],
    ["a-b", ["a"]],
    ["a-b-", ["a"]],
    ["a-bc-x", ["a"]],
    ["a-b-x", ["a-b"]],
    ["a-b-b-x", ["a-b"]],
    ["b-a-x", ["b"]],
    ["-a-x", []],
    ["-", []],
    ["", []],
  ])("imported-%s is of %p", (name, owners) => {
    const { index } = setUp(karmada);
    for (const cluster of ["a", "a-b", "b"]) index.addPool(cluster);
    index.put(handMade(name));
    expect(owner(index)).toEqual(owners);
  });

  test("a generated name is never matched against clusters", () => {
    const { index } = setUp(karmada);
    for (const cluster of ["a", "b"]) index.addPool(cluster);
    index.put(karmadaSlice("a-b", "x-pool-relay", { endpoints: endpointsAt("10.0.0.1") }));
    expect(owner(index)).toEqual(["a-b"]);
    index.put(handMade("a--x-pool-relay-x7k2m"));
    expect(owner(index)).toEqual(["a-b"]);
  });

  test("a slice that takes another name's labels is no longer looked at", () => {
    const { index } = setUp(karmada);
    const slice = handMade("a-manual");
    index.put(slice);
    index.put(makeSlice({ name: slice.metadata.name }));
    index.addPool("a");
    expect(owner(index)).toEqual([]);
    index.put(slice);
    index.remove(slice);
    index.removePool("a");
    index.addPool("a");
    expect(owner(index)).toEqual([]);
    expect(index.counts().used).toBe(0);
  });
});
