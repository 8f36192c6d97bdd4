import { expect, test } from "bun:test";
import fc from "fast-check";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { OwnershipRule } from "../../src/kubernetes/ownership.ts";
import { SliceIndex } from "../../src/kubernetes/slices.ts";
import { recordedLog } from "../support/recorded-log.ts";
import {
  anySliceEvent,
  CLUSTERS,
  NAMESPACES,
  SERVICES,
  SliceModel,
  send,
} from "../support/slice-events.ts";

const anyEvent = fc.oneof(
  { weight: 3, arbitrary: anySliceEvent },
  fc.record({ type: fc.constant("add pool"), cluster: fc.constantFrom(...CLUSTERS) }),
  fc.record({ type: fc.constant("remove pool"), cluster: fc.constantFrom(...CLUSTERS) }),
);

const anyDifference = anySliceEvent.filter(({ type }) => type !== "replace");

const KEYS = CLUSTERS.flatMap((cluster) =>
  NAMESPACES.flatMap((namespace) => SERVICES.map((service) => ({ cluster, namespace, service }))),
);

function setUp(rule: OwnershipRule) {
  const told = new Set<string>();
  const index = new SliceIndex({
    rule,
    routers: { namespace: "dynamo", service: "global-router" },
    changed: (key) => {
      // Whoever hears of a Service hears of it once.
      expect(told).not.toContain(JSON.stringify(key));
      told.add(JSON.stringify(key));
    },
    log: recordedLog().log,
  });
  return { index, told };
}

/** What the index knows of each Service, whatever the order that it learned it in. */
function state(index: SliceIndex): Map<string, string> {
  return new Map(
    KEYS.map((key) => {
      const slices = index
        .endpointsOf(key)
        .map(({ addresses, pods, ports }) => JSON.stringify({ addresses, pods, ports }));
      return [JSON.stringify(key), slices.sort().join()];
    }),
  );
}

function counts(index: SliceIndex): unknown {
  const { used, leftOut } = index.counts();
  const sorted = Object.entries(leftOut).map(([reason, { count, names }]) => {
    expect(names).toHaveLength(Math.min(count, 10));
    return [reason, names.toSorted()];
  });
  return { used, leftOut: sorted };
}

for (const [mode, rule] of Object.entries({ karmada, mcs })) {
  test(`${mode}: after any events the index is the one made from what is there then`, () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 25 }), (events) => {
        const { index, told } = setUp(rule);
        const model = new SliceModel();
        const pools: string[] = [];
        for (const event of events) {
          const before = state(index);
          told.clear();
          if (event.type === "add pool") {
            index.addPool(event.cluster);
            pools.push(event.cluster);
          } else if (event.type === "remove pool") {
            if (!pools.includes(event.cluster)) continue;
            index.removePool(event.cluster);
            pools.splice(pools.indexOf(event.cluster), 1);
          } else {
            send(index, event);
            model.apply(event);
          }
          const after = state(index);
          for (const [key, slices] of after) {
            if (slices !== before.get(key)) expect(told).toContain(key);
          }
        }
        const fresh = setUp(rule);
        for (const cluster of pools) fresh.index.addPool(cluster);
        fresh.index.replace(model.slices());
        expect(state(index)).toEqual(state(fresh.index));
        expect(counts(index)).toEqual(counts(fresh.index));
      }),
    );
  });

  test(`${mode}: a list does what puts and removals of what differs would do`, () => {
    fc.assert(
      fc.property(fc.array(anySliceEvent, { maxLength: 15 }), anyDifference, (events, last) => {
        const { index, told } = setUp(rule);
        const other = setUp(rule);
        const model = new SliceModel();
        for (const cluster of CLUSTERS) {
          index.addPool(cluster);
          other.index.addPool(cluster);
        }
        for (const event of events) {
          told.clear();
          other.told.clear();
          send(index, event);
          send(other.index, event);
          model.apply(event);
        }
        model.apply(last);
        told.clear();
        index.replace(model.slices());
        other.told.clear();
        send(other.index, last);
        expect(state(index)).toEqual(state(other.index));
        expect(counts(index)).toEqual(counts(other.index));
        // The list tells of no more than the one event does.
        expect([...told].sort()).toEqual([...other.told].sort());
        told.clear();
        index.replace(model.slices());
        expect([...told]).toEqual([]);
      }),
    );
  });
}
