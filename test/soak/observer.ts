import { explained } from "../support/explained.ts";
import { faultsOf, scrape } from "../support/metrics.ts";
import { brief, getList, poolList } from "../support/relay.ts";
import type { Findings } from "./findings.ts";
import type { Group } from "./group.ts";
import type { Replica } from "./replica.ts";

/** Whether an error is of a process that is stopped or gone, or of a machine that is slow. */
function isNoAnswer(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === "TimeoutError" || ("code" in error && error.code !== ""))
  );
}

/** Looks at what a replica says of itself, once. */
export async function observe(
  replica: Replica,
  { hasTable, cluster }: Group,
  findings: Findings,
): Promise<void> {
  try {
    const faults = faultsOf(await scrape(replica.url), {
      table: hasTable,
      slices: cluster !== undefined,
    });
    findings.check(faults.length === 0, () => `${replica.name}'s metrics: ${faults.join("; ")}`);
    const before = await getList(replica.url);
    const said = await explained(replica.url);
    const after = await getList(replica.url);
    findings.count("explanations");
    // It has changed meanwhile, or can't be told yet.
    if (before.etag === "" || before.etag !== after.etag) return;
    const { pools, complete } = poolList(before.body);
    const listed = said.pools.filter((pool) => pool.listed).map(({ key }) => key);
    const isSame = Bun.deepEquals(
      listed,
      pools.map(({ key }) => key),
    );
    findings.check(
      isSame,
      () => `${replica.name} explains ${brief(said.pools)} of ${brief(pools)}`,
    );
    findings.check(said.service.complete === complete, () => {
      return `${replica.name} explains complete ${said.service.complete}, lists ${complete}`;
    });
    const { reasons } = said.service;
    findings.check(said.service.complete === (reasons.length === 0), () => {
      return `${replica.name}: ${said.service.complete} because of ${reasons.join("; ")}`;
    });
  } catch (error) {
    if (!isNoAnswer(error)) findings.violate(`${replica.name} can't be looked at: ${error}`);
  }
}
