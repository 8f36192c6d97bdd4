import { expect, test } from "bun:test";
import { flags, headings } from "../../src/cli/flags.ts";
import { helpText } from "../../src/cli/help.ts";

const help = helpText("global-discovery-service", "1.2.3", "Does what it says.");

test("help is as it was", () => {
  expect(help).toMatchSnapshot();
});

test("help has the four headings, every flag under one of them, and no line over 100 characters", () => {
  for (const { title } of Object.values(headings)) expect(help).toContain(`\n${title}:\n`);
  for (const [name, flag] of Object.entries(flags)) {
    expect(help.split(`  --${name} ${flag.value} `)).toHaveLength(2);
  }
  for (const line of help.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
});
