import fc from "fast-check";
import type { PoolKey, Registration } from "../../src/pools/pool.ts";

const encoder = new TextEncoder();

/** Text as the wire allows it anywhere: well-formed, without control characters. */
const text = fc.string({ unit: "grapheme", maxLength: 20 }).filter((s) => !/\p{Cc}/u.test(s));

/** A key part, often with the characters that an encoding could trip over. */
const keyPart = fc
  .oneof(
    fc.string({
      unit: fc.constantFrom("a", "b", "/", "%", "2", "F", "5", "."),
      minLength: 1,
      maxLength: 8,
    }),
    text,
    fc.constantFrom("__proto__", "constructor", "toString", "%2F", "\u{10000}", "\uff5e", "~"),
  )
  .filter((s) => s !== "" && !/^\p{White_Space}|\p{White_Space}$/u.test(s))
  .filter((s) => encoder.encode(s).length <= 253);

/** Any key that may be registered. */
export const anyKey: fc.Arbitrary<PoolKey> = fc.record({
  cluster_id: keyPart,
  namespace: keyPart,
  dgd_name: keyPart,
});

const label = text.filter((s) => /\P{White_Space}/u.test(s));
const origin = fc
  .tuple(fc.constantFrom("http", "https"), fc.domain(), fc.integer({ min: 1024, max: 65_535 }))
  .map(([scheme, host, port]) => `${scheme}://${host.toLowerCase()}:${port}/`);

/** Any registration, in the form that the service keeps. */
export const anyRegistration: fc.Arbitrary<Registration> = fc.record({
  key: anyKey,
  location: fc.record({
    region: label,
    availability_zone: fc.option(text),
    datacenter: fc.option(text),
  }),
  model: label,
  // Small sets, so that members often repeat.
  capabilities: fc.array(fc.oneof(fc.constantFrom("a", "b", "c"), label), { maxLength: 5 }),
  frontends: fc.array(origin, { maxLength: 3 }),
  capacity: fc.array(
    fc.record({
      sku: fc.oneof(fc.constantFrom("H100", "1 H100", "A100"), label),
      workers: fc.oneof(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
    }),
    { maxLength: 4 },
  ),
});
