import { expect, test } from "bun:test";
import fc from "fast-check";
import { differences } from "../../src/pools/canonical.ts";
import { anyRegistration } from "../support/arbitraries.ts";
import { makeRegistration } from "../support/pools.ts";

const shuffled = <T>(list: readonly T[]) =>
  fc.shuffledSubarray([...list], { minLength: list.length, maxLength: list.length });

test("registrations whose lists hold the same members in any order are the same", () => {
  fc.assert(
    fc.property(
      anyRegistration.chain((registration) =>
        fc.tuple(
          fc.constant(registration),
          shuffled(registration.capabilities),
          shuffled(registration.frontends),
          shuffled(registration.capacity),
        ),
      ),
      ([registration, capabilities, frontends, capacity]) => {
        const other = { ...registration, capabilities, frontends, capacity };
        expect(differences(registration, other)).toEqual([]);
      },
    ),
  );
});

test("each member counts as often as it occurs", () => {
  const two = makeRegistration({ capabilities: ["a", "a", "b"] });
  const one = makeRegistration({ capabilities: ["a", "b", "b"] });
  expect(differences(two, one)).toEqual(["capabilities"]);
  expect(differences(two, makeRegistration({ capabilities: ["a", "b"] }))).toEqual([
    "capabilities",
  ]);
});

test("two registrations differ in a field exactly when they differ in what it holds", () => {
  const sorted = (list: readonly unknown[]) => list.map((x) => JSON.stringify(x)).sort();
  fc.assert(
    fc.property(anyRegistration, anyRegistration, (a, b) => {
      const fields = differences(a, b);
      expect(differences(b, a)).toEqual(fields);
      const differs = (x: unknown, y: unknown) => JSON.stringify(x) !== JSON.stringify(y);
      expect(fields).toEqual(
        [
          ["location.region", differs(a.location.region, b.location.region)],
          [
            "location.availability_zone",
            differs(a.location.availability_zone, b.location.availability_zone),
          ],
          ["location.datacenter", differs(a.location.datacenter, b.location.datacenter)],
          ["model", differs(a.model, b.model)],
          ["capabilities", differs(sorted(a.capabilities), sorted(b.capabilities))],
          ["frontends", differs(sorted(a.frontends), sorted(b.frontends))],
          ["capacity", differs(sorted(a.capacity), sorted(b.capacity))],
        ].flatMap(([field, different]) => (different ? [String(field)] : [])),
      );
    }),
  );
});

test("a number and a name that read alike together are told apart", () => {
  const a = makeRegistration({ capacity: [{ sku: "1 H100", workers: 2 }] });
  const b = makeRegistration({ capacity: [{ sku: "H100", workers: 21 }] });
  expect(differences(a, b)).toEqual(["capacity"]);
});

test("null and the empty string are not the same place", () => {
  const place = (datacenter: string | null) =>
    makeRegistration({ location: { region: "r", availability_zone: null, datacenter } });
  expect(differences(place(null), place(""))).toEqual(["location.datacenter"]);
});
