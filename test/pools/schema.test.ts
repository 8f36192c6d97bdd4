import { expect, test } from "bun:test";
import fc from "fast-check";
import { faultsOf } from "../../src/pools/faults.ts";
import { isAllowed } from "../../src/pools/parse.ts";
import { registrationBody } from "../../src/pools/schema.ts";
import { anyRegistration } from "../support/arbitraries.ts";
import { FUZZ_DEADLINE_MS, fuzz, mutatedValues } from "../support/fuzz.ts";

/** Of each rule, what just keeps it and what just breaks it. */
const ODD_MEMBERS: readonly unknown[] = [
  ...[
    "",
    " ",
    "a",
    "a".repeat(253),
    "a".repeat(254),
    "\u{1f600}".repeat(63),
    "\u{1f600}".repeat(64),
  ],
  ...["/".repeat(253), "%".repeat(172), "%".repeat(173), " a", "a\u3000", "\u00a0", "\u200b"],
  ...["a\u0085b", "\u0000", "a\udc00", "\ud800", "\u{2028}", "__proto__"],
  ...["http://a", "http://a/b", "https://a:443/", "ftp://a/", "http://a/?", "http://u@a/"],
  ...[-0, -1, 0, 8, 4294967295, 4294967296, 1e21, 1.5, 1e-9, "8", true, false, null],
  ...[[], ["a"], [1], [null], [[]], {}, { length: 1 }, { sku: "a", workers: 8 }],
];

/** Registrations of which one has the longest key, so that any longer one is too long. */
const CORPUS = ["a", "a".repeat(253)].map((part) => ({
  key: { cluster_id: part, namespace: part, dgd_name: "%".repeat(172) },
  location: { region: "r", availability_zone: "z", datacenter: null },
  model: "m",
  capabilities: ["a", "b"],
  frontends: ["http://a/", "http://b/"],
  capacity: [
    { sku: "H100", workers: 8 },
    { sku: "A100", workers: 0 },
  ],
}));

/** Whether the schema allows a value. All that tells has to agree. */
function agreed(value: unknown): boolean {
  const isRegistration = registrationBody.allows(value);
  expect(isAllowed(value)).toBe(isRegistration);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const faults = () => faultsOf({ ...value });
    if (isRegistration)
      expect(faults).toThrow("the schema allows what its compiled check has refused");
    else expect(faults()).not.toBe("");
  }
  return isRegistration;
}

test("what tells a registration without arktype allows what the schema does, whatever a field holds", () => {
  let [allowed, refused] = [0, 0];
  const count = (value: unknown) => {
    if (agreed(value)) allowed += 1;
    else refused += 1;
  };
  /** Tries all that `place` may hold or lack, and the same for what is in that. */
  function vary(holder: Record<string, unknown>, root: unknown): void {
    for (const [name, value] of Object.entries(holder)) {
      for (const odd of ODD_MEMBERS) {
        holder[name] = odd;
        count(root);
      }
      delete holder[name];
      count(root);
      holder[name] = value;
      // What JSON can say has only keys of its own, and a list's are its indices.
      if (typeof value === "object" && value !== null) vary(value as Record<string, unknown>, root);
    }
  }
  for (const registration of CORPUS) vary(registration, registration);
  for (const value of ODD_MEMBERS) expect(agreed(value)).toBe(false);
  expect(allowed).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(allowed);
});

const nearlyRegistration = anyRegistration.chain((registration) =>
  mutatedValues([...CORPUS, registration].map((each) => ({ ...each, odd: ODD_MEMBERS }))),
);

/** A registration with a field of a name that objects have by themselves, as JSON may give it. */
const withOddField = fc
  .tuple(anyRegistration, fc.constantFrom("__proto__", "constructor", "length"), fc.jsonValue())
  .map(([registration, name, value]) => {
    const rest = JSON.stringify(registration).slice(1);
    return JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)},${rest}`);
  });

const anyBody = fc.oneof(
  { weight: 8, arbitrary: nearlyRegistration },
  withOddField,
  fc.jsonValue(),
);

test(
  "and whatever a body says",
  () =>
    fuzz("schema", anyBody, 1000, (value) => {
      agreed(JSON.parse(JSON.stringify(value) ?? "null"));
    }),
  FUZZ_DEADLINE_MS,
);
