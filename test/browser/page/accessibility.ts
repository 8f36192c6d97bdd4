import { expect, test } from "bun:test";
import { busyNight, explanation, poolState } from "../../fixtures/explanation.ts";
import { contrasts } from "../contrast.ts";
import {
  manyPools,
  nextPoll,
  open,
  openInFakeTime,
  POLL_MS,
  row,
  rowsOf,
  textOf,
} from "../open-page.ts";
import { PageServer } from "../page-server.ts";

export function accessibilityTests(): void {
  const schemes = ["light", "dark"] as const;

  test.each(schemes)("in the %s, every text has a contrast of at least 4.5", async (scheme) => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server, { colorScheme: scheme, fakeTime: true });
    const { page } = tab;
    const texts = await contrasts(page);
    expect(texts.length).toBeGreaterThan(60);
    expect(texts.filter(({ ratio }) => ratio < 4.5)).toEqual([]);
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const brightness = /\d+/.exec(background)?.[0];
    expect(Number(brightness) > 128).toBe(scheme === "light");

    server.answer = explanation({ pools: manyPools(1) });
    await nextPoll(server, page);
    await page.getByText("The list is complete").waitFor();
    await server.goAway();
    await page.clock.fastForward(POLL_MS);
    await page.locator(".outage").waitFor();
    const stale = await contrasts(page);
    expect(stale.some(({ text }) => text.includes("can't be reached"))).toBe(true);
    expect(stale.filter(({ ratio }) => ratio < 4.5)).toEqual([]);
  });

  test("nothing is wider than the screen, be it narrow or wide and the ids as long as they may be", async () => {
    const night = busyNight();
    const long = poolState(
      { cluster_id: "W".repeat(253), namespace: "m-".repeat(126), dgd_name: "é".repeat(126) },
      {
        listed: false,
        reasons: [`no registration from cluster ${"W".repeat(253)}`],
        written_in: "w".repeat(200),
        disagreements: {
          count: 4_294_967_295,
          fields: ["location.availability_zone", "capabilities"],
        },
      },
    );
    const service = { ...night.service, reasons: ["x".repeat(500)] };
    await using server = new PageServer({ ...night, service, pools: [long, ...night.pools] });
    await using tab = await open(server);
    for (const width of [320, 360, 414, 575, 768, 1024, 1279, 1281, 1440, 1920, 3840]) {
      await tab.page.setViewportSize({ width, height: 800 });
      const widths = await tab.page.evaluate(() => [
        document.documentElement.scrollWidth,
        document.body.scrollWidth <= document.documentElement.clientWidth,
      ]);
      expect(widths, `at ${width}`).toEqual([width, true]);
    }
  });

  test("on a narrow screen each value of a pool says what it is", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server, { viewport: { width: 360, height: 740 } });
    const cell = row(tab.page, "mocker-west-1").locator("td", { hasText: "2 s ago" }).first();
    const label = await cell.evaluate((element) => getComputedStyle(element, "::before").content);
    expect(label).toContain("Registered");
    expect(await tab.page.locator("#pool-table thead").isVisible()).toBe(false);
  });

  test.each([360, 1440])("at %d pixels the table is one to a screen reader", async (width) => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server, { viewport: { width, height: 800 } });
    const table = tab.page.getByRole("table", { name: /^Pools/ });
    expect(await table.getByRole("row").count()).toBeGreaterThanOrEqual(9);
    const header = table.getByRole("rowheader", {
      name: /^aws-west ?. ?dynamo ?. ?mocker-west-1$/,
    });
    expect(await header.getAttribute("scope")).toBe("row");
    // Said outright, since some browsers take a table that is laid out otherwise for none.
    const roles = await table.evaluate((element) => {
      const parts = [element, ...element.querySelectorAll("thead, tbody, tr, th, td")];
      return parts.map((part) => part.getAttribute("role"));
    });
    expect(new Set(roles)).toEqual(
      new Set(["table", "rowgroup", "row", "columnheader", "rowheader", "cell"]),
    );
    if (width === 360) return;
    const column = table.getByRole("columnheader", { name: "Lease left" });
    expect(await column.getAttribute("scope")).toBe("col");
  });

  test("changes of the state are read aloud, and the passing of time is not", async () => {
    await using server = new PageServer(explanation({ pools: manyPools(1) }));
    await using tab = await openInFakeTime(server);
    const { page } = tab;
    await page.evaluate(() => {
      document.documentElement.lang = "";
      for (const region of document.querySelectorAll("[role=status], output, [aria-live]")) {
        new MutationObserver(() => {
          document.documentElement.lang += `${region.textContent?.replaceAll(/\s+/g, " ").trim()};`;
        }).observe(region, { subtree: true, childList: true, characterData: true });
      }
    });
    const said = () => page.evaluate(() => document.documentElement.lang);
    server.answer = explanation({
      service: { uptime_s: 1 },
      pools: manyPools(1, () => ({ last_registered_s_ago: 99, reasons: ["odd for 3 s"] })),
    });
    await nextPoll(server, page);
    await page.getByText("Odd for 3 s").waitFor();
    expect(await said()).toBe("");
    server.answer = explanation({ service: { complete: false, reasons: ["why"] } });
    await nextPoll(server, page);
    await page.getByText("The list is not complete").waitFor();
    expect(await said()).toContain("The list is not complete");
  });

  test("everything is reached and used with the keyboard alone, and the focus is seen", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await open(server);
    const { page } = tab;
    const focused = () =>
      page.evaluate(() => {
        const element = document.activeElement;
        if (element === null) return ["", ""];
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return [element.id || element.textContent, `${outlineStyle} ${outlineWidth}`];
      });
    const order: (string | null | undefined)[] = [];
    for (let n = 0; n < 7; n += 1) {
      await page.keyboard.press("Tab");
      const [what, outline] = await focused();
      order.push(what);
      expect(outline, String(what)).toBe("solid 2px");
    }
    expect(order).toEqual([
      ...["pause", "words", "unlisted"],
      ...["This page as JSON", "Pools", "Routers", "Metrics"],
    ]);
    await page.locator("#pause").focus();
    await page.keyboard.press("Enter");
    expect(await textOf(page, "#pause")).toBe("Resume updates");
    await page.keyboard.press("Tab");
    await page.keyboard.type("qwen");
    await page.keyboard.press("Enter");
    expect(await rowsOf(page)).toHaveLength(3);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    expect(await textOf(page, "#nothing")).toBe("No pool matches.");
    expect(page.url()).toBe(server.url);
  });

  test("nothing moves for those who ask for less motion", async () => {
    for (const [reducedMotion, animation] of [
      ["no-preference", "changed"],
      ["reduce", "none"],
    ] as const) {
      await using server = new PageServer(explanation({ pools: manyPools(1) }));
      await using tab = await open(server, { reducedMotion, fakeTime: true });
      server.answer = explanation({ pools: manyPools(1, () => ({ listed: false })) });
      await nextPoll(server, tab.page);
      const changed = tab.page.locator("#pool-table tbody tr.changed");
      await changed.waitFor();
      expect(await changed.evaluate((row) => getComputedStyle(row).animationName)).toBe(animation);
    }
  });
}
