import { expect, test } from "bun:test";
import { explanation } from "../../fixtures/explanation.ts";
import { openTab } from "../browser.ts";
import { manyPools, nextPoll, openInFakeTime, POLL_MS, rowsOf, textOf } from "../open-page.ts";
import { PageServer } from "../page-server.ts";

export function outageTests(): void {
  test("it says when the service can't be reached and since when, and when it is back", async () => {
    await using server = new PageServer(explanation({ pools: manyPools(1) }));
    await using tab = await openInFakeTime(server);
    const { page } = tab;
    const answeredAt = /\d\d:\d\d:\d\d UTC/.exec(await textOf(page, "#updated"))?.[0] ?? "";
    expect(answeredAt).toStartWith("03:00:0");
    await server.goAway();
    await page.clock.fastForward(POLL_MS);
    await page.locator(".outage").waitFor();
    const words = `The service can't be reached since ${answeredAt}: no connection. What is below is from then.`;
    expect(await textOf(page, "#outage")).toBe(words);
    expect(await page.title()).toStartWith("No answer");
    expect(await rowsOf(page)).toHaveLength(1);
    await page.clock.fastForward(5 * POLL_MS);
    // Each change of the words would be read aloud.
    expect(await textOf(page, "#outage")).toBe(words);
    server.comeBack();
    server.answer = explanation({ pools: manyPools(4) });
    await nextPoll(server, page);
    await page.getByText("4 pools are listed.").waitFor();
    expect(await page.locator(".outage").count()).toBe(0);
    expect(await page.locator("#outage").textContent()).toContain("answers again");
    expect(await page.title()).toBe("Global Discovery Service");
  });

  test.each([
    [
      "an error, in its own words",
      new Response("not yet", { status: 503 }),
      "it answers 503 not yet",
    ],
    ["something else", new Response("<p>Log in</p>"), "what answers is not the service"],
  ])("it says when the service answers with %s", async (_, response, words) => {
    await using server = new PageServer(() => response.clone());
    await using tab = await openTab(server.url);
    await tab.page.locator(".outage").waitFor();
    expect(await textOf(tab.page, "#outage")).toContain(words);
    expect(await textOf(tab.page, "#outage")).not.toContain("What is below");
    expect(await tab.page.locator("#state").isVisible()).toBe(false);
  });

  test("it says when the service does not answer in time", async () => {
    await using server = new PageServer(() => new Promise(() => {}));
    await using tab = await openTab(server.url);
    await tab.page.locator(".outage").waitFor();
    expect(await textOf(tab.page, "#outage")).toContain("no answer within 10 s");
  });
}
