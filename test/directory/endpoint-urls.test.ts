import { expect, test } from "bun:test";
import fc from "fast-check";
import { endpointUrl, frontendPort } from "../../src/directory/endpoint-urls.ts";
import { canonicalAddress } from "../../src/kubernetes/addresses.ts";
import type { NumberedPort } from "../../src/kubernetes/endpoints.ts";

function port(number: number, name = "", appProtocol?: string): NumberedPort {
  return { port: number, name, appProtocol };
}

test.each([
  ["10.0.0.1", 8000, "", undefined, "http://10.0.0.1:8000/"],
  ["10.0.0.1", 80, "", undefined, "http://10.0.0.1/"],
  ["10.0.0.1", 443, "", undefined, "http://10.0.0.1:443/"],
  ["10.0.0.1", 443, "https", undefined, "https://10.0.0.1/"],
  ["10.0.0.1", 80, "https", undefined, "https://10.0.0.1:80/"],
  ["10.0.0.1", 8443, "http", "https", "https://10.0.0.1:8443/"],
  ["10.0.0.1", 8443, "web", "HTTPS", "https://10.0.0.1:8443/"],
  ["10.0.0.1", 8443, "https", "http", "https://10.0.0.1:8443/"],
  ["10.0.0.1", 8000, "httpsx", "kubernetes.io/h2c", "http://10.0.0.1:8000/"],
  ["2001:db8::1", 8000, "", undefined, "http://[2001:db8::1]:8000/"],
  ["2001:db8::1", 80, "", undefined, "http://[2001:db8::1]/"],
])("%s at port %i named '%s' for %s is %s", (address, number, name, appProtocol, url) => {
  expect(endpointUrl(address, port(number, name, appProtocol))).toBe(url);
});

test("every URL is in the serialised form of the URL standard", () => {
  const address = fc
    .oneof(fc.ipV4(), fc.ipV6())
    .map(canonicalAddress)
    .filter((a) => a !== undefined);
  const number = fc.oneof(fc.constantFrom(80, 443), fc.integer({ min: 1, max: 65_535 }));
  fc.assert(
    fc.property(address, number, fc.constantFrom("http", "https"), (at, portNumber, name) => {
      const url = endpointUrl(at, port(portNumber, name));
      expect(new URL(url).href).toBe(url);
      expect(new URL(url).protocol).toBe(`${name}:`);
    }),
  );
});

test("frontends take requests at the port named http, else at the only one", () => {
  const [http, https, grpc] = [port(1, "http"), port(2, "https"), port(3, "grpc")];
  expect(frontendPort([grpc, http])).toBe(http);
  expect(frontendPort([https])).toBe(https);
  expect(frontendPort([port(4)])).toEqual(port(4));
  expect(frontendPort([https, grpc])).toBeUndefined();
  expect(frontendPort([])).toBeUndefined();
});
