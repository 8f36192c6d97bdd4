import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { canMakeCertificates } from "../support/certificates.ts";
import {
  cleanUp,
  compiledCommand,
  dynoxide,
  Emulator,
  isInstalled,
  sourceCommand,
} from "../support/dynamodb.ts";
import { frontendsOf, relaysOf, Scene } from "../support/imports.ts";
import { poolNamed } from "../support/pool-items.ts";
import { freshKey, register, registration } from "../support/relay.ts";
import { once, Service } from "../support/service.ts";
import { Relays } from "../support/watch.ts";
import { closeBrowser, hasBrowser, openTab } from "./browser.ts";
import { row, rowsOf, seen, textOf, untilSeen } from "./open-page.ts";

setDefaultTimeout(120_000);

describe.skipIf(!hasBrowser("the tests of the page that the service serves"))("the page of", () => {
  afterAll(async () => {
    await closeBrowser();
    await cleanUp();
  });

  for (const [name, command] of [
    ["the source", sourceCommand],
    ["the compiled file", compiledCommand],
  ] as const) {
    describe(name, () => {
      lifeOfAPool(command);
      outage(command);
      hostileIds(command);
      imports(command);
    });
  }
});

function lifeOfAPool(command: readonly string[]): void {
  test("shows a pool that registers, and why it is gone when its lease has ended", async () => {
    const args = ["--heartbeat-interval-secs=1", "--lease-duration-secs=2"];
    await using service = await Service.start(command, { args });
    await using tab = await openTab(service.url, { fakeTime: true });
    const { page } = tab;
    await page.locator("#state").waitFor();
    expect(await textOf(page, "#service")).toMatch(
      /Version\s*\d+\.\d+\.\d+\s*Mode\s*registrations/,
    );
    const key = freshKey();
    {
      await using _ = new Relays(service.url, [registration({ key })]);
      await untilSeen(page, row(page, key.cluster_id).getByText("Listed", { exact: true }));
      await untilSeen(page, page.getByText("The list is complete"));
    }
    await untilSeen(page, page.getByText("Not listed", { exact: true }));
    expect(await seen(row(page, key.cluster_id))).toMatch(/lease ended \d+ s ago/i);
    expect(tab.complaints).toEqual([]);
    expect([...new Set(tab.requests)].filter((url) => !url.startsWith(service.url))).toEqual([]);
  });
}

function outage(command: readonly string[]): void {
  test("says when the service is gone, and goes on when another is there", async () => {
    await using first = await Service.start(command);
    await using tab = await openTab(first.url, { fakeTime: true });
    const { page } = tab;
    await page.locator("#state").waitFor();
    expect(await rowsOf(page)).toEqual([]);
    await first.stop();
    await untilSeen(page, page.locator(".outage"));
    expect(await textOf(page, "#outage")).toContain("can't be reached since");
    const args = ["--listen", new URL(first.url).host];
    await using second = await Service.start(command, { args });
    await register(second.url, registration());
    await untilSeen(page, page.getByText("1 pool is listed."));
    expect(await page.locator(".outage").count()).toBe(0);
  });
}

function hostileIds(command: readonly string[]): void {
  test("shows ids with markup in them as text, and why the list is not complete", async () => {
    const args = ["--lease-duration-secs=86400"];
    await using service = await Service.start(command, { args });
    const markup = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`;
    await register(service.url, registration({ key: freshKey({ dgd_name: markup }) }));
    await register(service.url, registration({ key: freshKey({ dgd_name: "</script><h1>" }) }));
    await using tab = await openTab(service.url);
    const { page } = tab;
    await page.getByText("2 pools are listed.").waitFor();
    const names = await page.locator("#pool-table .name").allTextContents();
    expect(names).toEqual([markup, "</script><h1>"]);
    expect(await page.title()).toStartWith("Not complete");
    expect(await textOf(page, "#headline")).toContain("not complete");
    expect(await textOf(page, ".reasons")).toMatch(/lease|start/);
    expect(tab.complaints).toEqual([]);
  });
}

const emulator = once(() => Emulator.start(dynoxide));

function imports(command: readonly string[]): void {
  const canRun = isInstalled(dynoxide) && canMakeCertificates("the page in karmada mode");
  describe.skipIf(!canRun)("in karmada mode with DynamoDB", () => {
    test("shows what is missing of a pool, and the slices and the table", async () => {
      const table = await (await emulator()).createTable();
      await using scene = await Scene.start({ command, mode: "karmada", table, lease: 10 });
      scene.put(relaysOf("karmada", "whole"), frontendsOf("karmada", "whole"));
      scene.put(relaysOf("karmada", "no-frontends"), relaysOf("karmada", "not-registered"));
      await using _ = new Relays(scene.url, [
        poolNamed("whole"),
        poolNamed("no-frontends"),
        poolNamed("no-relays"),
      ]);
      await using tab = await openTab(scene.url, {
        viewport: { width: 1440, height: 900 },
        fakeTime: true,
      });
      const { page } = tab;
      await untilSeen(page, page.getByText("2 pools are listed; 2 known pools are not."));
      expect(await seen(row(page, "no-relays"))).toContain(
        "No Ready endpoint of Service no-relays-pool-relay is imported from cluster aws-west",
      );
      expect(await seen(row(page, "not-registered"))).toContain(
        "No registration from cluster aws-west",
      );
      expect(await seen(row(page, "no-frontends"))).toMatch(/frontend Service is not imported/);
      expect(await textOf(page, "#slices")).toContain("4 slices used");
      expect(await textOf(page, "#table")).toMatch(/Last read\s*\d+ s ago/);
      const headers = await page.locator("#pool-table thead th:visible").allInnerTexts();
      expect(headers).toHaveLength(9);
      expect(tab.complaints).toEqual([]);
    });
  });
}
