import { expect, test } from "bun:test";
import type { Explanation } from "../../../src/http/page/client/explanation.ts";
import { busyNight, explanation, poolState } from "../../fixtures/explanation.ts";
import { until } from "../../support/until.ts";
import { openTab } from "../browser.ts";
import { nextPoll, open, openInFakeTime, rowsOf, textOf } from "../open-page.ts";
import { PageServer } from "../page-server.ts";

export function safetyTests(): void {
  test("it asks nobody but the service, and for nothing but itself and the explanation", async () => {
    await using server = new PageServer(busyNight());
    await using tab = await openInFakeTime(server);
    await nextPoll(server, tab.page);
    expect([...new Set(tab.requests)].filter((url) => !url.startsWith("data:"))).toEqual([
      server.url,
      `${server.url}explain`,
    ]);
    // What the browser asks for by itself, such as an icon, is in no tab's record.
    expect([...new Set(server.asked)]).toEqual(["/", "/explain"]);
    expect(tab.complaints).toEqual([]);
  });

  test("ids, reasons and errors with markup in them are shown as text", async () => {
    const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>&amp;';
    const key = { cluster_id: markup, namespace: "'\"><b>", dgd_name: "</td></table><h1>" };
    const hostile: Explanation = explanation({
      service: { complete: false, version: markup, reasons: [markup] },
      pools: [
        poolState(key, {
          listed: false,
          reasons: [markup],
          written_in: markup,
          disagreements: { count: 1, fields: [markup] },
        }),
        poolState({ cluster_id: "__proto__", namespace: "constructor", dgd_name: "toString" }),
      ],
      slices: { used: 1, left_out: { [markup]: { count: 1, names: [markup] } } },
      table: { ...NO_TABLE, last_error: markup },
    });
    await using server = new PageServer(hostile);
    await using tab = await open(server, { viewport: { width: 1440, height: 900 } });
    const { page } = tab;
    const cells = page.locator("#pool-table tbody tr").first().locator("> *");
    expect(await cells.nth(1).textContent()).toBe(`${markup}/'"><b>/</td></table><h1>`);
    expect(await cells.nth(2).textContent()).toBe(markup);
    expect(await cells.nth(5).textContent()).toBe(markup);
    expect(await page.locator(".reasons").textContent()).toBe(markup);
    expect(await textOf(page, "#slices")).toContain(markup);
    expect(await textOf(page, "#table")).toContain(markup);
    expect(await page.locator("img, script:not(body > script), b, h1:not(header h1)").count()).toBe(
      0,
    );
    expect(await rowsOf(page)).toHaveLength(2);
    expect(await page.title()).toStartWith("Not complete");
    expect(tab.complaints).toEqual([]);
  });

  test("the policy is in force: no other script, no markup from text, no other host", async () => {
    await using other = new PageServer(explanation());
    await using server = new PageServer(explanation());
    await using tab = await open(server);
    const outcome = await tab.page.evaluate(async (elsewhere) => {
      const attempt = (action: () => unknown) => {
        try {
          action();
          return "done";
        } catch (error) {
          return error instanceof Error ? error.name : "failed";
        }
      };
      const script = attempt(() => {
        const element = document.createElement("script");
        element.append("document.title = 'run'");
        document.body.append(element);
      });
      const markup = attempt(() => {
        document.body.innerHTML = "<p>";
      });
      const style = document.createElement("style");
      style.append("body { display: none }");
      document.head.append(style);
      // Not at once: what the debugger runs itself is let off.
      const evaluated = await new Promise((resolve) => {
        setTimeout(() => resolve(attempt(() => new Function("return 1")())));
      });
      const fetched = await fetch(elsewhere, { mode: "no-cors" }).then(
        () => "done",
        () => "refused",
      );
      const display = getComputedStyle(document.body).display;
      return { script, markup, evaluated, fetched, display, title: document.title };
    }, other.url);
    expect(outcome.title).toBe("Global Discovery Service");
    expect(outcome.markup).toBe("TypeError");
    expect(outcome.evaluated).toBe("EvalError");
    expect(outcome.fetched).toBe("refused");
    expect(outcome.display).toBe("block");
    expect(other.asked).toEqual([]);
  });

  test("nobody may show it in a frame", async () => {
    await using server = new PageServer(explanation());
    const host = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () =>
        new Response(`<iframe src="${server.url}"></iframe>`, {
          headers: { "Content-Type": "text/html" },
        }),
    });
    try {
      await using tab = await openTab(host.url.href);
      await until("a complaint", () => (tab.complaints.length > 0 ? true : undefined));
      expect(tab.complaints.join()).toContain("frame-ancestors");
      expect(server.polls).toBe(0);
    } finally {
      await host.stop(true);
    }
  });
}

const NO_TABLE = {
  last_read_s_ago: null,
  last_read_took_ms: null,
  items: null,
  pages: null,
  last_error: null,
};
