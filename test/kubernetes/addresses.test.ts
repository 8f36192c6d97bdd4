import { expect, test } from "bun:test";
import { canonicalAddress } from "../../src/kubernetes/addresses.ts";

test.each([
  ["10.43.1.2", "10.43.1.2"],
  ["0.0.0.0", "0.0.0.0"],
  ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
  ["2001:0db8::0001", "2001:db8::1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
  ["::", "::"],
  ["::ffff:10.0.0.1", "::ffff:a00:1"],
])("%s is the address %s", (text, address) => {
  expect(canonicalAddress(text)).toBe(address);
});

test.each([
  "",
  "web.example.com",
  "10.43.1",
  "10.43.1.256",
  "010.43.1.2",
  "10.43.1.2/24",
  "10.43.1.2:80",
  " 10.43.1.2",
  "0x0a.1.1.1",
  "[::1]",
  "fe80::1%eth0",
  "fe80::1%25eth0",
  "::1]:80/[",
  "1::2::3",
])("%p is no address", (text) => {
  expect(canonicalAddress(text)).toBeUndefined();
});
