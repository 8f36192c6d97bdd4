import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { frontendsOf, MODES, relaysOf, Scene } from "../../support/imports.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { endpointsAt } from "../../support/slices.ts";
import { until } from "../../support/until.ts";
import { names, Relays, sample, Watch } from "../../support/watch.ts";

const LEASE_SECS = 3;
const NAMES = ["a", "b", "c"];

/** A service that is stopped for three leases while its watch is open. */
export function pauseTests(command: readonly string[]): void {
  for (const mode of MODES) {
    test.concurrent(`${mode}: a stop of three leases loses no pool, and what has changed meanwhile shows`, async () => {
      await using scene = await Scene.start({ command, mode, lease: LEASE_SECS });
      const { service, fake, url } = scene;
      for (const name of NAMES) scene.put(relaysOf(mode, name), frontendsOf(mode, name));
      const bodies = NAMES.map((name) => poolNamed(name));
      const isWhole = (list: Parameters<typeof names>[0]) =>
        Boolean(list?.complete && Bun.deepEquals(names(list), NAMES));
      {
        await using _ = new Relays(url, bodies);
        await using watch = new Watch(url);
        await watch.for("a complete list of all", ({ list }) => isWhole(list));
        await until("a watch", () => fake.watching === 1 || undefined);
      }
      service.kill("SIGSTOP");
      await until(
        "the process to stand still",
        () => / T /.test(readFileSync(`/proc/${service.pid}/stat`, "utf8")) || undefined,
      );
      const queued = [sample(url), sample(url)];
      await Bun.sleep(1000);
      scene.put(relaysOf(mode, "a", { endpoints: endpointsAt("10.1.0.9") }));
      await Bun.sleep(3 * LEASE_SECS * 1000);
      service.kill("SIGCONT");
      for (const answer of [...queued, sample(url)]) {
        const { list, body } = await answer;
        expect(names(list), body).toEqual(NAMES);
        expect(list?.complete, body).toBe(false);
      }
      await using _ = new Relays(url, bodies);
      await using watch = new Watch(url);
      await watch.for("the change", ({ list }) =>
        Bun.deepEquals(list?.pools[0]?.relay_identities, ["ip:10.1.0.9"]),
      );
      await watch.for("a complete list of all", ({ list }) => isWhole(list));
      for (const { list, body } of watch.samples) expect(names(list), body).toEqual(NAMES);
      expect(service.stderr).toMatch(/ WARN .*not running/);
      expect(service.stderr).not.toMatch(/expired|no longer listed|can't be watched/);
      // The watch was alive all the while.
      expect(fake.of("list")).toHaveLength(1);
      expect(fake.of("watch")).toHaveLength(1);
    });
  }
}
