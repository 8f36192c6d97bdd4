import { expect, test } from "bun:test";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/clock.ts";
import { limits } from "../../src/runtime/limits.ts";
import { LineWriter } from "../../src/runtime/line-writer.ts";
import { temporaryFolder } from "../support/service.ts";

test("lines are written whole and in order, and flush waits for the last", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "log");
  const fd = openSync(path, "w");
  const writer = new LineWriter(fd, systemClock);
  const lines = Array.from({ length: 1000 }, (_, n) => `line ${n} with an é\n`);
  for (const line of lines) expect(writer.write(line)).toBe(true);
  await writer.flush();
  closeSync(fd);
  expect(readFileSync(path, "utf8")).toBe(lines.join(""));
});

test("what nobody reads is bounded, and there is room again once it was read", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "pipe");
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  // Both ends, so that opening doesn't wait for the other side.
  const fd = openSync(path, "r+");
  const writer = new LineWriter(fd, systemClock);
  const line = `${"x".repeat(999)}\n`;
  let taken = 0;
  while (writer.write(line)) taken += 1;
  expect(taken * line.length).toBeLessThanOrEqual(limits.logBytes);
  expect((taken + 1) * line.length).toBeGreaterThan(limits.logBytes);

  const reader = Bun.spawn(["head", "-c", String(taken * line.length), path], { stdout: "pipe" });
  expect(await new Response(reader.stdout).text()).toBe(line.repeat(taken));
  await writer.flush();
  expect(writer.write(line)).toBe(true);
  await writer.flush();
  closeSync(fd);
});

test("a reader that has gone away is no fault", async () => {
  using folder = temporaryFolder();
  const fd = openSync(join(folder.path, "closed"), "w");
  closeSync(fd);
  const writer = new LineWriter(fd, systemClock);
  writer.write("lost\n");
  await writer.flush();
  expect(writer.write("lost as well\n")).toBe(true);
  await writer.flush();
});
