import { expect, test } from "bun:test";
import { join } from "node:path";

function simulate(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync({
    cmd: [process.execPath, join(import.meta.dir, "simulate.ts"), ...args],
  });
  return { exitCode, out: stdout.toString(), err: stderr.toString() };
}

test("bun run simulate --seed runs one simulation, and tells how long that was", () => {
  const { exitCode, out, err } = simulate("--seed", "11");
  expect(err).toBe("");
  expect(out).toMatch(/^1 runs \(seeds 11 to 11\), \d+\.\d simulated hours, in \d+ s\n$/);
  expect(exitCode).toBe(0);
});

for (const { args, reason } of [
  { args: ["--seed", "1.5"], reason: "--seed: '1.5' is not a whole number" },
  { args: ["--minutes", "0"], reason: "--minutes: has to be above zero" },
  { args: ["--seed=1", "--seed=2"], reason: "--seed: given more than once" },
  { args: ["--sed", "1"], reason: "Unknown option '--sed'" },
  { args: ["11"], reason: "Unexpected argument '11'" },
]) {
  test(`bun run simulate ${args.join(" ")} is refused`, () => {
    const { exitCode, err } = simulate(...args);
    expect(err).toStartWith(reason);
    expect(err).toContain("Usage: bun run simulate");
    expect(exitCode).toBe(2);
  });
}
