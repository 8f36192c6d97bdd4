import { expect, test } from "bun:test";
import { createLogs, type LogOptions } from "../../src/runtime/log.ts";
import { FakeClock } from "../support/fake-clock.ts";

function setUp(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const logs = createLogs({
    filter: undefined,
    format: "text",
    colors: false,
    clock: new FakeClock(),
    write: (line) => lines.push(line) > 0,
    ...options,
  });
  return { logs, lines };
}

/** The levels that come through for a module. */
function levels(filter: string | undefined, module: "main" | "http" = "main"): string[] {
  const { logs, lines } = setUp({ filter, format: "json" });
  lines.length = 0;
  const log = logs(module);
  log.debug("debug");
  log.info("info");
  log.warn("warn");
  log.error("error");
  return lines.map((line) => JSON.parse(line).message);
}

test("a text line has the time, the level, the module, the message and the fields", () => {
  const { logs, lines } = setUp();
  logs("registrations").warn("something is odd", { pool: "a/b/c", count: 3 });
  expect(lines).toEqual([
    "2026-01-01T00:00:00.000Z WARN  registrations: something is odd pool=a/b/c count=3\n",
  ]);
});

test("a JSON line has the same, one object a line", () => {
  const { logs, lines } = setUp({ format: "json" });
  logs("registrations").warn("something is odd", { pool: "a\nb", count: 3 });
  expect(lines).toHaveLength(1);
  expect(lines[0]?.trimEnd()).not.toContain("\n");
  expect(JSON.parse(lines[0] ?? "")).toEqual({
    time: "2026-01-01T00:00:00.000Z",
    level: "WARN",
    target: "registrations",
    message: "something is odd",
    pool: "a\nb",
    count: 3,
  });
});

test("an id can forge neither a line nor a field", () => {
  const { logs, lines } = setUp();
  logs("main").info("pool added", { pool: 'x\n2026 ERROR main: forged\u2028 level="error"' });
  expect(lines.join("").split("\n")).toHaveLength(2);
  expect(lines[0]).toEndWith('pool="x\\u{a}2026 ERROR main: forged\\u{2028} level=\\"error\\""\n');
});

test("a back-slash in an id can't undo the escaping of a quote", () => {
  const { logs, lines } = setUp();
  logs("main").info("pool added", { pool: '\\" level=error' });
  expect(lines[0]).toEndWith('pool="\\\\\\" level=error"\n');
});

test("neither form of a line can be broken, hidden or turned around by an id", () => {
  const forged = "a\u2028b\u202ec\u001b[2Kd\u009b1me\u{e0041}f\u200bg\r\nERROR";
  for (const format of ["text", "json"] as const) {
    const { logs, lines } = setUp({ format });
    logs("main").info("pool added", { pool: forged });
    expect(lines[0]).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+\n$/u);
    if (format === "json") expect(JSON.parse(lines[0] ?? "").pool).toBe(forged);
  }
});

test("only levels at or above DYN_LOG are logged, info by default", () => {
  expect(levels(undefined)).toEqual(["info", "warn", "error"]);
  expect(levels("")).toEqual(["info", "warn", "error"]);
  expect(levels("trace")).toEqual(["debug", "info", "warn", "error"]);
  expect(levels("debug")).toEqual(["debug", "info", "warn", "error"]);
  expect(levels("WARN")).toEqual(["warn", "error"]);
  expect(levels("error")).toEqual(["error"]);
  expect(levels("off")).toEqual([]);
});

test("DYN_LOG may name modules; those it does not know are ignored, whatever they say", () => {
  expect(levels("warn,http=debug", "http")).toEqual(["debug", "info", "warn", "error"]);
  expect(levels("warn,http=debug", "main")).toEqual(["warn", "error"]);
  expect(levels("http=error, warn", "http")).toEqual(["error"]);
  expect(levels("info,dynamo_runtime=trace,tower=nonsense")).toEqual(["info", "warn", "error"]);
  expect(setUp({ filter: "info,tower=nonsense" }).lines).toEqual([]);
});

test("a level that DYN_LOG does not know is a warning, and info", () => {
  expect(levels("loud")).toEqual(["info", "warn", "error"]);
  expect(levels("warn,http=loud", "http")).toEqual(["info", "warn", "error"]);
  const { lines } = setUp({ filter: "loud" });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("WARN  main: ");
  expect(lines[0]).toContain("given=loud");
});

test("colours are there only when asked for", () => {
  const plain = setUp();
  plain.logs("main").error("x");
  expect(plain.lines[0]).not.toContain("\x1b");
  const colored = setUp({ colors: true });
  colored.logs("main").error("x");
  expect(colored.lines[0]).toContain("\x1b[31mERROR\x1b[0m");
});

test("lines that had to be dropped are counted in the next one that is written", () => {
  const lines: string[] = [];
  let isFull = false;
  const { logs } = setUp({
    format: "json",
    write: (line) => !isFull && lines.push(line) > 0,
  });
  const log = logs("main");
  log.info("before");
  isFull = true;
  for (let n = 0; n < 3; n += 1) log.info("lost");
  isFull = false;
  log.info("after");
  log.info("later");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { message: "before" },
    { message: "log lines were dropped: nobody was reading", level: "WARN", count: 3 },
    { message: "after" },
    { message: "later" },
  ]);
});
