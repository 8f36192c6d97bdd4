import { expect, test } from "bun:test";
import { parseCommandLine } from "../../src/cli/parse.ts";

const faults = (...args: string[]) =>
  parseCommandLine(args).faults.map(({ subject, reason }) => `${subject}: ${reason}`);

test("an unknown flag is refused, with the flag that it is near to", () => {
  expect(faults("--lisen", "x")[0]).toBe("--lisen: unknown flag; did you mean --listen?");
  expect(faults("--lease=5")).toEqual([
    "--lease: unknown flag; did you mean --lease-duration-secs?",
  ]);
  expect(faults("--Listen=x")).toEqual(["--Listen: unknown flag; did you mean --listen?"]);
  expect(faults("--pool_discovery=mcs")).toEqual([
    "--pool_discovery: unknown flag; did you mean --pool-discovery?",
  ]);
  expect(faults("-listen")).toEqual(["-listen: unknown flag; did you mean --listen?"]);
  expect(faults("--no-listen")).toEqual(["--no-listen: unknown flag"]);
  expect(faults("--verbose")).toEqual(["--verbose: unknown flag"]);
  expect(faults("-v", "-v")).toEqual(["-v: unknown flag", "-v: unknown flag"]);
  expect(faults("-hx")).toEqual(["-hx: unknown flag"]);
  expect(parseCommandLine(["-hx"]).help).toBe(false);
  expect(faults("--__proto__=1")).toEqual(["--__proto__: unknown flag"]);
});

test("an argument that is no flag is refused, before and behind --", () => {
  expect(faults("serve", "--", "--help")).toEqual([
    "'serve': not a flag; there are no other arguments",
    "'--help': not a flag; there are no other arguments",
  ]);
});

test("a flag is never another flag's value", () => {
  const line = parseCommandLine([
    "--listen",
    "--router",
    "a=http://h",
    "--tls-cert-path",
    "--",
    "x",
  ]);
  expect(line.faults.map(({ subject }) => subject)).toEqual(["--listen", "--tls-cert-path", "'x'"]);
  expect(line.given.get("router")).toEqual([{ replica: "a", url: "http://h/" }]);
  expect(faults("--lease-duration-secs", "-5")).toEqual([
    "--lease-duration-secs: '-5' is not a whole number of seconds (digits only)",
  ]);
});

test("a missing value says what is missing", () => {
  expect(faults("--listen")).toEqual(["--listen: needs a value: --listen <addr>"]);
});

test("a repeated flag that takes one value is one fault, however often it comes", () => {
  expect(
    faults("--lease-duration-secs=5", "--lease-duration-secs=5", "--lease-duration-secs", "5"),
  ).toEqual(["--lease-duration-secs: given more than once, but takes one value"]);
});

test("help and version are found anywhere on the line", () => {
  expect(parseCommandLine(["--listen", "--help"])).toMatchObject({ help: true, version: false });
  expect(parseCommandLine(["x", "-V", "--nonsense", "-h"])).toMatchObject({
    help: true,
    version: true,
  });
  expect(parseCommandLine(["-hV"])).toMatchObject({ help: true, version: true });
  expect(parseCommandLine(["--", "--help"]).help).toBe(false);
  expect(parseCommandLine(["--listen=--help"]).help).toBe(false);
  expect(faults("--help=yes")).toEqual(["--help: takes no value"]);
});

test("what is repeated of a line is short and printable", () => {
  for (const fault of faults(`--\u001b[31m${"x".repeat(500)}`, `\n${"y".repeat(500)}`)) {
    expect(fault.length).toBeLessThan(150);
    expect(fault).not.toMatch(/\p{Cc}/u);
  }
});
