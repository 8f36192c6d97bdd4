import { expect, test } from "bun:test";
import { busyNight, explanation } from "../../fixtures/explanation.ts";
import { manyPools, open, rowsOf, textOf } from "../open-page.ts";
import { PageServer } from "../page-server.ts";

export function filterTests(): void {
  test("pools are found by any part of their key", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server);
    const { page } = tab;
    expect(await textOf(page, "#shown")).toBe("All 9");
    await page.getByLabel("Filter").fill("WEST qwen");
    expect(await rowsOf(page)).toHaveLength(1);
    expect(await textOf(page, "#shown")).toBe("1 of 9");
    await page.getByLabel("Filter").fill("nowhere");
    expect(await textOf(page, "#nothing")).toBe("No pool matches.");
    await page.getByLabel("Filter").fill("");
    await page.getByLabel("Only not listed").check();
    expect(await rowsOf(page)).toHaveLength(3);
    expect(await textOf(page, "#shown")).toBe("3 of 9");
  });

  test("of 10,000 pools it shows some hundred, counts the rest, and finds each", async () => {
    await using server = new PageServer(explanation({ pools: manyPools(10_000) }));
    await using tab = await open(server);
    const { page } = tab;
    expect((await rowsOf(page)).length).toBe(200);
    expect(await textOf(page, "#shown")).toBe("The first 200 of 10,000; filter to see others");
    await page.getByLabel("Filter").fill("pool-9876");
    expect(await rowsOf(page)).toEqual([expect.stringContaining("cluster-6/dynamo/pool-9876")]);
  });
}
