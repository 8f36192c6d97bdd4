import { expect, test } from "bun:test";
import fc from "fast-check";
import { RenewalOrder } from "../../src/registrations/renewal-order.ts";

const step = fc.record({
  kind: fc.constantFrom("add", "renew", "remove"),
  who: fc.nat({ max: 99 }),
  /** By how much the clock shows less than it did; mostly it goes on. */
  back: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat({ max: 9 })),
});

test("whoever was renewed longest ago comes first, whatever comes and goes, and though the clock goes back", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const order = new RenewalOrder();
      /** Places in the order of renewal, with the time of each. */
      let model: { place: number; ms: number }[] = [];
      const put = (place: number, ms: number) => {
        const at = model.findLastIndex((entry) => entry.ms <= ms) + 1;
        model.splice(at, 0, { place, ms });
      };
      for (const [index, { kind, who, back }] of steps.entries()) {
        const ms = index - back;
        const chosen = model[who % Math.max(1, model.length)];
        if (kind === "add") {
          const place = order.add(ms);
          expect(model.map((entry) => entry.place)).not.toContain(place);
          put(place, ms);
        } else if (chosen !== undefined) {
          model = model.filter((entry) => entry !== chosen);
          if (kind === "renew") {
            order.renew(chosen.place, ms);
            put(chosen.place, ms);
          } else {
            order.remove(chosen.place);
          }
        }
        for (const entry of model) expect(order.renewedAtMs(entry.place)).toBe(entry.ms);
        expect(order.oldest()).toBe(model[0]?.place);
      }
      // The whole order, from its old end.
      const places: number[] = [];
      for (let place = order.oldest(); place !== undefined; place = order.oldest()) {
        places.push(place);
        order.remove(place);
      }
      expect(places).toEqual(model.map(({ place }) => place));
    }),
  );
});

test("a place that is free is given again", () => {
  const order = new RenewalOrder();
  const places = Array.from({ length: 1000 }, () => order.add(0));
  for (const place of places) order.remove(place);
  expect(new Set(places.map(() => order.add(1)))).toEqual(new Set(places));
});
