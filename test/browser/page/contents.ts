import { expect, test } from "bun:test";
import { busyNight, explanation } from "../../fixtures/explanation.ts";
import { openTab } from "../browser.ts";
import { manyPools, open, row, rowsOf, seen, textOf } from "../open-page.ts";
import { PageServer } from "../page-server.ts";

export function contentsTests(): void {
  test("the top says that the list is complete, what answers, and since when", async () => {
    await using server = new PageServer(explanation({ pools: manyPools(3) }));
    await using tab = await open(server);
    expect(await textOf(tab.page, "#headline")).toBe("The list is complete");
    expect(await textOf(tab.page, "#tally")).toBe("3 pools are listed.");
    const facts = (await textOf(tab.page, "#service")).replaceAll("\n", " ");
    expect(facts).toBe("Version 1.2.3 Mode registrations Store memory Up 3 d 4 h");
    expect(await tab.page.title()).toBe("Global Discovery Service");
    expect(tab.complaints).toEqual([]);
  });

  test("where the list is not complete, the top says why in words", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server);
    expect(await textOf(tab.page, "#headline")).toContain("not complete");
    const reasons = await tab.page.locator(".reasons li").allTextContents();
    expect(reasons).toEqual([...busyNight().service.reasons]);
    expect(await textOf(tab.page, "#tally")).toBe("6 pools are listed; 3 known pools are not.");
    expect(await tab.page.title()).toStartWith("Not complete");
  });

  test("a pool that is missing comes first, with the reason and all that is known of it", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server, { viewport: { width: 1440, height: 900 } });
    const rows = await rowsOf(tab.page);
    expect(rows).toHaveLength(9);
    expect(rows.slice(0, 4).map((text) => text.split(/\s*\n\s*|\t/)[0])).toEqual([
      "Not listed",
      "Not listed",
      "Not listed",
      "Listed",
    ]);
    const cells = await tab.page.locator("#pool-table tbody tr").first().locator("> *").all();
    expect(await Promise.all(cells.map((cell) => cell.textContent()))).toEqual([
      "Not listed",
      "aws-west/dynamo/mocker-west-1",
      "no Ready endpoint of Service mocker-west-1-pool-relay is imported from cluster aws-west",
      "2 s ago",
      "12 s",
      "us-west-2",
      "0",
      "2",
      "0",
    ]);
    expect(await seen(row(tab.page, "onprem-fra/dynamo/mistral-large"))).toContain(
      "No registration from cluster onprem-fra",
    );
    expect(await seen(row(tab.page, "aws-west/dynamo/llama-3-70b"))).toContain(
      "14: model, capacity",
    );
  });

  test("the slices that are left out are told by the reason, with names", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server);
    const text = (await textOf(tab.page, "#slices")).replaceAll(/\s+/g, " ");
    expect(text).toContain("84 slices used, 1,315 left out");
    expect(text).toContain("imported, but from which cluster can't be told");
    expect(text).toContain("dynamo/etcd-fq9zd, and 1,309 more");
    expect(text).not.toContain("broker");
  });

  test("the table's last read is told, and its last error", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server);
    const text = (await textOf(tab.page, "#table")).replaceAll("\n", " ");
    expect(text).toContain("Last read 9 s ago Took 41 ms Items 9 Pages 1");
    expect(text).toContain("Last error DynamoDB throttles Query on table pools");
  });

  test("what a mode or a store does not have is not there", async () => {
    await using server = new PageServer(explanation({ pools: manyPools(1) }));
    await using tab = await open(server, { viewport: { width: 1440, height: 900 } });
    expect(await tab.page.locator("#slices").isVisible()).toBe(false);
    expect(await tab.page.locator("#table").isVisible()).toBe(false);
    const headers = await tab.page.locator("#pool-table thead th:visible").allInnerTexts();
    expect(headers).toEqual(["State", "Pool", "Why", "Registered", "Lease left", "Disagreements"]);
  });

  test("pools that the explanation leaves out are counted", async () => {
    await using server = new PageServer(
      explanation({ pools: manyPools(1), pools_left_out: 20_000 }),
    );
    await using tab = await open(server);
    expect(await textOf(tab.page, "#tally")).toBe(
      "1 pool is listed; 20,000 more are known, but too many to tell of.",
    );
  });

  test("without a single pool it says so", async () => {
    await using server = new PageServer(explanation());
    await using tab = await open(server);
    expect(await textOf(tab.page, "#pools")).toContain("No pool is known.");
    expect(await textOf(tab.page, "#tally")).toBe("0 pools are listed.");
  });

  test("without JavaScript it says so, and where the same is", async () => {
    await using server = new PageServer(explanation());
    await using tab = await openTab(server.url, { javaScriptEnabled: false });
    expect(await textOf(tab.page, "noscript")).toContain("needs JavaScript");
    expect(await tab.page.locator("noscript a").getAttribute("href")).toBe("explain");
  });
}
