import type { Locator, Page } from "playwright-core";
import type { PoolState } from "../../src/http/page/client/explanation.ts";
import { poolState } from "../fixtures/explanation.ts";
import { until } from "../support/until.ts";
import { openTab, type Tab, type TabOptions } from "./browser.ts";
import type { PageServer } from "./page-server.ts";

/** The page asks again so long after each answer. */
export const POLL_MS = 5_000;

/** Opens the page and waits for the first answer. */
export async function open(server: PageServer, options: TabOptions = {}): Promise<Tab> {
  const tab = await openTab(server.url, options);
  await tab.page.locator("#state").waitFor();
  return tab;
}

/** Opens the page with timers that wait until `nextPoll` lets the time pass. */
export function openInFakeTime(server: PageServer): Promise<Tab> {
  return open(server, { fakeTime: true });
}

/** Lets the time pass until the page asks again. */
export async function nextPoll(server: PageServer, page: Page): Promise<void> {
  const { polls } = server;
  // Again and again, since the page starts to wait only when it has shown the last answer.
  await until("the next poll", async () => {
    await page.clock.fastForward(POLL_MS);
    return server.polls > polls ? true : undefined;
  });
}

/** Lets the time pass until something is to be seen. */
export async function untilSeen(page: Page, locator: Locator): Promise<void> {
  await until(`${locator}`, async () => {
    await page.clock.fastForward(POLL_MS);
    return (await locator.isVisible()) || undefined;
  });
}

/** The text of an element as it is to be seen. */
export async function seen(locator: Locator): Promise<string> {
  return (await locator.allInnerTexts()).join();
}

export function textOf(page: Page, selector: string): Promise<string> {
  return seen(page.locator(selector));
}

/** The pools that are shown, each as the text of its row. */
export function rowsOf(page: Page): Promise<string[]> {
  return page.locator("#pool-table tbody tr").allInnerTexts();
}

export function row(page: Page, name: string): Locator {
  return page.locator("#pool-table tbody tr").filter({ hasText: name });
}

export function manyPools(
  number: number,
  overridesOf: (n: number) => Partial<PoolState> = () => ({}),
): PoolState[] {
  return Array.from({ length: number }, (_, n) =>
    poolState(
      { cluster_id: `cluster-${n % 7}`, namespace: "dynamo", dgd_name: `pool-${n}` },
      overridesOf(n),
    ),
  );
}
