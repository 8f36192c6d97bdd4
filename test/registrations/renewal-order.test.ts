import { expect, test } from "bun:test";
import fc from "fast-check";
import { RenewalOrder } from "../../src/registrations/renewal-order.ts";

const step = fc.record({
  kind: fc.constantFrom("add", "renew", "remove"),
  who: fc.nat({ max: 99 }),
});

test("whoever was renewed longest ago comes first, whatever comes and goes", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const order = new RenewalOrder();
      /** Places in the order of renewal, with the time of each. */
      let model: { place: number; ms: number }[] = [];
      for (const [ms, { kind, who }] of steps.entries()) {
        const chosen = model[who % Math.max(1, model.length)];
        if (kind === "add") {
          const place = order.add(ms);
          expect(model.map((entry) => entry.place)).not.toContain(place);
          model.push({ place, ms });
        } else if (chosen !== undefined) {
          model = model.filter((entry) => entry !== chosen);
          if (kind === "renew") {
            order.renew(chosen.place, ms);
            model.push({ place: chosen.place, ms });
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
