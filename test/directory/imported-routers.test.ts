import { describe, expect, test } from "bun:test";
import { ImportedRouters } from "../../src/directory/imported-routers.ts";
import type { Router, RouterPort } from "../../src/directory/routers.ts";
import { readyEndpointsOf } from "../../src/kubernetes/endpoints.ts";
import type { EndpointPort } from "../../src/kubernetes/slice-api.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { endpointsAt, makeSlice, podAt, type SliceParts } from "../support/slices.ts";

const HTTP: EndpointPort = { name: "http", port: 8080 };
const GRPC: EndpointPort = { name: "grpc", port: 9090 };

function setUp(port: RouterPort = undefined) {
  const clock = new FakeClock();
  const { log, lines } = recordedLog();
  const routers = new ImportedRouters({ port, clock, log });
  const put = (cluster: string, ...slices: SliceParts[]) => {
    routers.put(
      cluster,
      slices.map((parts) => readyEndpointsOf(makeSlice(parts), { withPods: true })),
    );
  };
  const listed = (): Router[] =>
    JSON.parse(new TextDecoder().decode(routers.representation().bytes)).routers;
  return { clock, routers, put, listed, lines };
}

describe("routers", () => {
  test("are the endpoints of every cluster, as <source cluster>/<pod>, by replica, then url", () => {
    const { put, routers } = setUp();
    put(
      "gcp",
      { ports: [HTTP], endpoints: [podAt("router-1", "10.0.0.2"), podAt("router-0", "10.0.0.1")] },
      { ports: [{ port: 80 }], endpoints: [podAt("router-0", "10.0.0.1")] },
    );
    put("aws", { ports: [HTTP], endpoints: endpointsAt("10.0.0.9") });
    expect(new TextDecoder().decode(routers.representation().bytes)).toBe(
      '{"routers":[{"replica":"aws/10.0.0.9","url":"http://10.0.0.9:8080/"},' +
        '{"replica":"gcp/router-0","url":"http://10.0.0.1/"},' +
        '{"replica":"gcp/router-0","url":"http://10.0.0.1:8080/"},' +
        '{"replica":"gcp/router-1","url":"http://10.0.0.2:8080/"}]}',
    );
  });

  test("of a pod with IPv4 and IPv6 are listed once, by IPv4", () => {
    const { put, listed } = setUp();
    const v6 = {
      ports: [HTTP],
      addressType: "IPv6",
      endpoints: [podAt("both", "2001:DB8::1"), podAt("only", "2001:DB8::2")],
    };
    put("aws", v6, { ports: [HTTP], endpoints: [podAt("both", "10.0.0.1")] });
    expect(listed()).toEqual([
      { replica: "aws/both", url: "http://10.0.0.1:8080/" },
      { replica: "aws/only", url: "http://[2001:db8::2]:8080/" },
    ]);
    // Another cluster's pod by the same name is another pod.
    put("gcp", v6);
    expect(listed().map(({ url }) => url)).toContain("http://[2001:db8::1]:8080/");
    // Not Ready by IPv4, or no port there.
    const endpoint = { ...podAt("both", "10.0.0.1"), conditions: { ready: false } };
    put("aws", v6, { ports: [HTTP], endpoints: [endpoint] });
    expect(listed()).toContainEqual({ replica: "aws/both", url: "http://[2001:db8::1]:8080/" });
    put("aws", v6, { ports: [], endpoints: [podAt("both", "10.0.0.1")] });
    expect(listed()).toContainEqual({ replica: "aws/both", url: "http://[2001:db8::1]:8080/" });
  });

  test("with the same address in two clusters are two", () => {
    const { put, listed } = setUp();
    for (const cluster of ["aws", "gcp"]) {
      put(cluster, { ports: [HTTP], endpoints: endpointsAt("10.0.0.1") });
    }
    expect(listed()).toEqual([
      { replica: "aws/10.0.0.1", url: "http://10.0.0.1:8080/" },
      { replica: "gcp/10.0.0.1", url: "http://10.0.0.1:8080/" },
    ]);
  });

  test("that two slices name are listed once", () => {
    const { put, listed } = setUp();
    const slice = { ports: [HTTP], endpoints: [podAt("router-0", "10.0.0.1")] };
    put("aws", slice, slice);
    expect(listed()).toHaveLength(1);
  });

  test("are reached by https where their port says so", () => {
    const { put, listed } = setUp();
    put("aws", { ports: [{ name: "https", port: 443 }], endpoints: endpointsAt("10.0.0.1") });
    expect(listed()[0]?.url).toBe("https://10.0.0.1/");
  });

  test("leave with the last endpoint of their cluster", () => {
    const { put, listed } = setUp();
    put("aws", { ports: [HTTP], endpoints: endpointsAt("10.0.0.1") });
    put("gcp", { ports: [HTTP], endpoints: endpointsAt("10.0.0.2") });
    put("aws");
    expect(listed().map(({ replica }) => replica)).toEqual(["gcp/10.0.0.2"]);
  });

  test("that stay as they are keep the very same bytes", () => {
    const { put, routers } = setUp();
    expect(routers.representation()).toBe(routers.representation());
    const endpoints = [podAt("a", "10.0.0.1"), podAt("b", "10.0.0.2")];
    put("aws", { ports: [HTTP], endpoints });
    const before = routers.representation();
    put("aws", { ports: [HTTP], endpoints: endpoints.toReversed() });
    put("gcp", { ports: [HTTP], endpoints: [] });
    expect(routers.representation()).toBe(before);
    put("gcp", { ports: [HTTP], endpoints });
    expect(routers.representation().hash).not.toBe(before.hash);
  });
});

describe("--router-port", () => {
  const both = { ports: [HTTP, GRPC], endpoints: endpointsAt("10.0.0.1") };

  test.each([
    ["grpc", ["http://10.0.0.1:9090/"]],
    [9090, ["http://10.0.0.1:9090/"]],
    ["http", ["http://10.0.0.1:8080/"]],
    ["9090", []],
    ["metrics", []],
    [7070, []],
    [undefined, []],
  ])("%p picks from several", (port, urls) => {
    const { put, listed } = setUp(port);
    put("aws", both);
    expect(listed().map(({ url }) => url)).toEqual(urls);
  });

  test("unset, a slice with several ports is left out, and the log says to set it, once a minute", () => {
    const { put, listed, lines, clock } = setUp();
    put("aws", both, { ports: [HTTP], endpoints: endpointsAt("10.0.0.2") });
    expect(listed().map(({ url }) => url)).toEqual(["http://10.0.0.2:8080/"]);
    expect(lines).toEqual([
      {
        level: "warn",
        message: "routers are left out",
        fields: {
          reason: "the router Service has several ports; set --router-port to one of them",
          cluster: "aws",
          ports: "http:8080,grpc:9090",
        },
      },
    ]);
    clock.advance(59_999);
    put("gcp", both);
    expect(lines).toHaveLength(1);
    clock.advance(1);
    put("gcp", both);
    expect(lines).toHaveLength(2);
  });

  test("set to a port that there is not, the log says so", () => {
    const { put, lines } = setUp("metrics");
    put("aws", { ports: [HTTP, { port: 9090 }], endpoints: endpointsAt("10.0.0.1") });
    expect(lines.map(({ fields }) => [fields.reason, fields.ports])).toEqual([
      ["the router Service has no port that is --router-port", "http:8080,9090"],
    ]);
  });

  test("is no help to a Service without ports, and the log says so", () => {
    const { put, lines } = setUp();
    put("aws", { ports: [{ name: "http", port: null }], endpoints: endpointsAt("10.0.0.1") });
    expect(lines.map(({ fields }) => fields.reason)).toEqual(["the router Service has no port"]);
  });

  test("is not asked for where no endpoint is Ready", () => {
    const { put, lines } = setUp();
    put("aws", { ...both, endpoints: [] });
    expect(lines).toEqual([]);
  });
});
