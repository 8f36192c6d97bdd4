import { expect, test } from "bun:test";
import fc from "fast-check";
import { ImportedDirectory } from "../../src/directory/imported.ts";
import type { PoolFacts } from "../../src/directory/pool-facts.ts";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { SliceSink } from "../../src/kubernetes/reflector.ts";
import { type Registration, sortKey } from "../../src/pools/pool.ts";
import { newCounts } from "../../src/registrations/counts.ts";
import type { Departure, LivePools, RegistrationStore } from "../../src/registrations/store.ts";
import { unwatched } from "../support/facts.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { joinedLists, ROUTERS } from "../support/joined-lists.ts";
import { makeRegistration } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";
import type { ListedPool } from "../support/relay.ts";
import {
  anySliceEvent,
  CLUSTERS,
  DGD_NAMES,
  NAMESPACES,
  SliceModel,
  send,
} from "../support/slice-events.ts";

const key = fc.record({
  cluster_id: fc.constantFrom(...CLUSTERS),
  namespace: fc.constantFrom(...NAMESPACES),
  dgd_name: fc.constantFrom(...DGD_NAMES),
});
const anyEvent = fc.oneof(
  { weight: 3, arbitrary: anySliceEvent },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("register"), key, model: fc.constantFrom("m", "n") }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("expire"), key }) },
);

for (const [mode, rule] of Object.entries({ karmada, mcs })) {
  test(`${mode}: after any events the lists are the join of what is there then`, () => {
    const port = fc.constantFrom(undefined, "http", "grpc", 80, 8000);
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), port, (events, routerPort) => {
        const live = new Map<string, Registration>();
        const slices = new SliceModel();
        const sinks: SliceSink[] = [];
        const stores: LivePools[] = [];
        const directory = new ImportedDirectory({
          openStore: (livePools) => {
            stores.push(livePools);
            return storeOf(live);
          },
          openSlices: (sink) => {
            sinks.push(sink);
            return readySource;
          },
          rule,
          routers: { ...ROUTERS, port: routerPort },
          clock: new FakeClock(),
          log: recordedLog().log,
        });
        const [sink] = sinks;
        const [livePools] = stores;
        if (sink === undefined || livePools === undefined) throw new Error("not opened");
        for (const event of events) {
          const pools = directory.pools();
          const routers = directory.routers();
          if (event.type === "register") {
            const registration = makeRegistration({ key: event.key, model: event.model });
            livePools.put(sortKey(event.key), registration, JSON.stringify(registration));
            live.set(sortKey(event.key), registration);
          } else if (event.type === "expire") {
            const id = sortKey(event.key);
            if (live.delete(id)) livePools.remove(id, LEFT);
          } else {
            send(sink, event);
            slices.apply(event);
          }
          const expected = joinedLists(rule, slices.slices(), [...live.values()], routerPort);
          const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
          expect(text(directory.pools().bytes)).toBe(expected.pools);
          expect(text(directory.routers().bytes)).toBe(expected.routers);
          expectExplained(directory, JSON.parse(expected.pools).pools);
          // An outcome that is the same is the very same.
          if (text(routers.bytes) === expected.routers) expect(directory.routers()).toBe(routers);
          if (text(pools.bytes) === expected.pools) expect(directory.pools()).toBe(pools);
        }
      }),
    );
  });
}

const LEFT: Departure = {
  what: "lease ended",
  endedMsAgo: 0,
  registeredMsAgo: 15_000,
  writtenIn: null,
  disagreements: { count: 0, fields: [], lastMsAgo: null },
};

/** A store that is ready, and whose live pools are these. */
function storeOf(live: ReadonlyMap<string, Registration>): RegistrationStore {
  const { what: _, endedMsAgo: __, ...rest } = LEFT;
  return {
    open: async () => {},
    renew: () => false,
    register: () => {},
    expire: () => {},
    isComplete: () => true,
    incompleteReasons: () => [],
    poolIds: () => live.keys(),
    registrationOf: (id) =>
      live.has(id) ? { ...rest, isLive: true, reasons: [], leaseLeftMs: 0 } : undefined,
    liveCount: () => live.size,
    counts: newCounts(),
    table: () => null,
    unreadyReason: () => undefined,
    close: () => {},
  };
}

/** Checks that what is told of the pools agrees with which are listed, and how. */
function expectExplained(directory: ImportedDirectory, pools: readonly ListedPool[]): void {
  const told = new Map<string, PoolFacts>();
  for (const id of directory.knownPools()) {
    const facts = directory.poolFacts(id);
    if (facts !== undefined) told.set(id, facts);
  }
  const listed = [...told].filter(([, facts]) => facts.listed).map(([id]) => id);
  expect(listed.sort()).toEqual(pools.map(({ key }) => sortKey(key)).sort());
  expect(directory.facts().pools.listed).toBe(pools.length);
  for (const { key, frontends, relay_identities: identities } of pools) {
    const facts = told.get(sortKey(key));
    expect(facts?.relaysReady).toBe(identities.length);
    expect(facts?.frontendsReady).toBe(frontends.length);
    expect(facts?.reasons.length).toBe(frontends.length === 0 ? 1 : 0);
  }
  for (const facts of told.values()) {
    if (!facts.listed) expect(facts.reasons).not.toEqual([]);
  }
}

const readySource = {
  start: () => {},
  stop: () => {},
  unreadyReason: () => undefined,
  isSynced: true,
  watch: unwatched,
  outdatedReason: () => undefined,
};
