import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { explanation } from "../../fixtures/explanation.ts";
import { until } from "../../support/until.ts";
import { openTab } from "../browser.ts";
import { manyPools, nextPoll, openInFakeTime, POLL_MS, rowsOf, textOf } from "../open-page.ts";
import { PageServer } from "../page-server.ts";

export function updateTests(): void {
  test("it updates by itself", async () => {
    await using server = new PageServer(explanation({ service: { complete: false } }));
    await using tab = await openInFakeTime(server);
    expect(await textOf(tab.page, "#headline")).toContain("not complete");
    server.answer = explanation({ pools: manyPools(2) });
    await nextPoll(server, tab.page);
    await tab.page.getByText("The list is complete").waitFor();
    expect(await rowsOf(tab.page)).toHaveLength(2);
    server.answer = explanation({ pools: manyPools(2, () => ({ listed: false })) });
    await nextPoll(server, tab.page);
    await tab.page.getByText("0 pools are listed; 2 known pools are not.").waitFor();
    expect(tab.complaints).toEqual([]);
  });

  test("an update keeps the scroll position, the focus, the selection and the filter", async () => {
    const pools = (secs: number) =>
      manyPools(300, (n) => ({ last_registered_s_ago: secs, listed: n % 2 === 1 }));
    await using server = new PageServer(explanation({ pools: pools(1) }));
    await using tab = await openInFakeTime(server);
    const { page } = tab;
    await page.locator("#words").fill("cluster-3");
    await page.evaluate(() => {
      const pool = document.querySelectorAll("#pool-table tbody tr")[10];
      const lease = [...(pool?.children ?? [])].find((cell) => cell.textContent === "12 s");
      if (lease?.firstChild == null) throw new Error("there is no such pool");
      getSelection()?.setBaseAndExtent(lease.firstChild, 0, lease.firstChild, 4);
      document.getElementById("words")?.focus({ preventScroll: true });
      scrollTo(0, 400);
    });
    const state = () =>
      page.evaluate(() => [
        scrollY,
        document.activeElement?.id,
        getSelection()?.toString(),
        document.querySelector<HTMLInputElement>("#words")?.value,
      ]);
    const before = await state();
    expect(before).toEqual([400, "words", "12 s", "cluster-3"]);
    server.answer = explanation({ pools: pools(77) });
    await nextPoll(server, page);
    await page.getByText("1 min 17 s ago").first().waitFor();
    expect(await state()).toEqual(before);
  });

  test("a pool that changes place takes its row along, and leaves the others where they are", async () => {
    const pools = manyPools(30);
    await using server = new PageServer(explanation({ pools }));
    await using tab = await openInFakeTime(server);
    const { page } = tab;
    await page.evaluate(() => {
      for (const row of document.querySelectorAll<HTMLElement>("#pool-table tbody tr")) {
        row.title = row.querySelector(".name")?.textContent ?? "";
      }
      const moved = new Set<string>();
      new MutationObserver((changes) => {
        for (const { addedNodes } of changes) {
          for (const node of addedNodes) if (node instanceof HTMLElement) moved.add(node.title);
        }
        document.documentElement.lang = [...moved].join(" ");
      }).observe(document.querySelector("#pool-table tbody") ?? document, { childList: true });
    });
    const moved = () => page.evaluate(() => document.documentElement.lang);
    server.answer = explanation({
      pools: pools.map((pool, n) => (n === 12 ? { ...pool, listed: false } : pool)),
    });
    await nextPoll(server, page);
    await page.getByText("Not listed", { exact: true }).waitFor();
    expect((await rowsOf(page))[0]).toContain("pool-12");
    expect(await moved()).toBe("pool-12");
    server.answer = explanation({ pools });
    await nextPoll(server, page);
    await page.getByText("30 pools are listed.").waitFor();
    expect((await rowsOf(page))[12]).toContain("pool-12");
    expect(await moved()).toBe("pool-12");
  });

  test("updates stop in a tab that nobody sees, and go on at once when it is seen again", async () => {
    await using server = new PageServer(explanation());
    await using tab = await openInFakeTime(server);
    const { page } = tab;
    await turn(page, "hidden");
    const { polls } = server;
    await page.clock.fastForward(10 * POLL_MS);
    expect(server.polls).toBe(polls);
    await turn(page, "visible");
    await until("a poll", () => (server.polls === polls + 1 ? true : undefined));
    await nextPoll(server, page);
  });

  test("updates can be paused, to read in peace", async () => {
    await using server = new PageServer(explanation());
    await using tab = await openInFakeTime(server);
    const { page } = tab;
    await page.getByRole("button", { name: "Pause updates" }).click();
    const { polls } = server;
    await page.clock.fastForward(10 * POLL_MS);
    expect(server.polls).toBe(polls);
    await page.getByRole("button", { name: "Resume updates" }).click();
    await until("a poll", () => (server.polls === polls + 1 ? true : undefined));
  });

  test("it never asks twice at once", async () => {
    const held = Promise.withResolvers<void>();
    await using server = new PageServer(explanation());
    await using tab = await openInFakeTime(server);
    server.answer = async () => {
      await held.promise;
      return Response.json(explanation());
    };
    const { polls } = server;
    await tab.page.clock.fastForward(POLL_MS);
    await until("a poll", () => (server.polls === polls + 1 ? true : undefined));
    await turn(tab.page, "hidden");
    await turn(tab.page, "visible");
    await tab.page.clock.fastForward(10 * POLL_MS);
    expect(server.polls).toBe(polls + 1);
    held.resolve();
  });

  test("it works behind a proxy that serves it under a path", async () => {
    await using server = new PageServer(explanation({ pools: manyPools(1) }));
    await using tab = await openTab(`${server.url}behind/a/proxy/`);
    await tab.page.getByText("1 pool is listed.").waitFor();
    expect(server.asked).toEqual(["/behind/a/proxy/", "/behind/a/proxy/explain"]);
  });
}

/** Makes the page believe that its tab is seen, or that it is not. */
function turn(page: Page, state: DocumentVisibilityState): Promise<void> {
  return page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}
