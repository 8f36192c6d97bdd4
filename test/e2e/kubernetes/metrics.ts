import { expect, test } from "bun:test";
import { errorEvent, refuse } from "../../support/fake-api-server.ts";
import { frontendsOf, imported, MODES, relaysOf, Scene, WEST } from "../../support/imports.ts";
import { faultsOf, scrape } from "../../support/metrics.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { register } from "../../support/relay.ts";
import { endpointsAt } from "../../support/slices.ts";
import { until } from "../../support/until.ts";

const PARTS = { table: false, slices: true };
const PATIENT_MS = 45_000;

/** What `GET /metrics` tells of the slices. */
export function metricsTests(command: readonly string[]): void {
  for (const mode of MODES) {
    test.concurrent(`${mode}: metrics tell of slices by their use, and of what is listed`, async () => {
      await using scene = await Scene.start({ command, mode, lease: 60 });
      scene.put(
        relaysOf(mode, "one"),
        frontendsOf(mode, "one"),
        imported(mode, WEST, "two-pool-relay", {
          addressType: "FQDN",
          endpoints: endpointsAt("relay.example.com"),
        }),
        imported(mode, WEST, "something-else", { endpoints: endpointsAt("10.9.0.1") }),
      );
      await register(scene.url, poolNamed("one"));
      await register(scene.url, poolNamed("two"));
      const now = await until("the slices", async () => {
        const now = await scrape(scene.url);
        return now.sum("gds_slices") === 4 ? now : undefined;
      });
      expect(faultsOf(now, PARTS)).toEqual([]);
      expect(now.sum("gds_build_info", { mode, store: "memory" })).toBe(1);
      const uses = ["used", "fqdn", "other-service"];
      expect(uses.map((use) => now.value(`gds_slices{use="${use}"}`))).toEqual([2, 1, 1]);
      expect(now.value("gds_watch_synced")).toBe(1);
      expect(now.value('gds_pools{state="registered"}')).toBe(2);
      expect(now.value('gds_pools{state="listed"}')).toBe(1);
      const heardAtSecs = now.value("gds_watch_last_event_timestamp_seconds");
      expect(Math.abs(Date.now() / 1000 - heardAtSecs)).toBeLessThan(PATIENT_MS / 1000);
      await Bun.sleep(10);
      scene.put(relaysOf(mode, "three"));
      await until("a later event", async () => {
        const later = (await scrape(scene.url)).value("gds_watch_last_event_timestamp_seconds");
        return later > heardAtSecs ? true : undefined;
      });
    });
  }

  test.concurrent("before the first whole list the watch is not synced, and why it is begun again is counted", async () => {
    await using scene = await Scene.start({
      command,
      prepare: (fake) => fake.break(refuse(403, "Forbidden"), "list"),
    });
    const restarts = (reason: string) => async () => {
      const now = await scrape(scene.url);
      return now.sum("gds_watch_restarts_total", { reason }) > 0 ? now : undefined;
    };
    const denied = await until("a refusal", restarts("denied"), PATIENT_MS);
    expect(faultsOf(denied, PARTS)).toEqual([]);
    expect(denied.value("gds_watch_synced")).toBe(0);
    expect(denied.value("gds_watch_last_event_timestamp_seconds")).toBe(0);
    expect(denied.value("gds_complete")).toBe(0);
    scene.fake.mend();
    const isWatching = () => (scene.fake.watching === 1 ? true : undefined);
    await until("a watch", isWatching, PATIENT_MS);
    expect((await scrape(scene.url)).value("gds_watch_synced")).toBe(1);
    // A watch of less than a second is followed by a wait.
    await Bun.sleep(1500);
    scene.fake.endWatches();
    await until("an end", restarts("end"), PATIENT_MS);
    // Else there would be nothing to drop.
    await until("a watch again", isWatching, PATIENT_MS);
    scene.fake.break(errorEvent(410, "Expired"), "watch");
    scene.fake.dropAll();
    await until("an error", restarts("error"), PATIENT_MS);
    await until("a version that is gone", restarts("expired"), PATIENT_MS);
    scene.fake.mend();
  });
}
