import fc from "fast-check";

/** For how long each property is tried, where it is not for as many runs as it says. */
const secs = wholeNumber("FUZZ_SECS");
/** The seed of a run that failed, which is in its message, to have the same again. */
const seed = wholeNumber("FUZZ_SEED");

/** How long a test of `fuzz` may take. */
export const FUZZ_DEADLINE_MS = 60_000 + 2000 * (secs ?? 0);

/**
 * Tries `check` with what `arbitrary` makes, `runs` times, or for `FUZZ_SECS` seconds where that is
 * set; then it says how often. What fails is made small, and the message has the seed: the same
 * command with `FUZZ_SEED` fails in the same way.
 */
export async function fuzz<T>(
  what: string,
  arbitrary: fc.Arbitrary<T>,
  runs: number,
  check: (value: T) => Promise<void> | void,
): Promise<void> {
  const property = fc.asyncProperty(arbitrary, async (value) => check(value));
  const details = await fc.check(property, {
    ...(secs === undefined
      ? { numRuns: runs }
      : {
          numRuns: Number.MAX_SAFE_INTEGER,
          interruptAfterTimeLimit: secs * 1000,
          markInterruptAsFailure: false,
        }),
    ...(seed === undefined ? {} : { seed }),
  });
  if (secs !== undefined) console.log(`fuzz: ${what}: ${details.numRuns} runs`);
  if (!details.failed) return;
  const report = await fc.asyncDefaultReportMessage(details);
  throw new Error(`FUZZ_SEED=${details.seed} ${report}`, { cause: details.errorInstance });
}

function wholeNumber(name: string): number | undefined {
  const text = process.env[name];
  if (text === undefined) return undefined;
  if (!/^-?\d+$/.test(text)) throw new Error(`${name} is to be a whole number, not '${text}'`);
  return Number(text);
}

/** Anywhere: documents are no worse at their ends, where fast-check would look more often. */
const place = fc.noBias(fc.nat());
const length = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 8 }) },
  fc.integer({ min: 1, max: 2000 }),
);

/** Bytes that parsers stumble over. */
const ODD_BYTES = [
  ...["\0", "\r\n", "\n", "\r\n\r\n", "\t", " ", ":", "\u{feff}", "\u{2028}", "é", "💥"],
  ...["{", "}", "[", "]", '"', "\\", "\\u0000", "\\ud800", ",", "null", "-0", "1e400", "__proto__"],
  ...["- ", "&a ", "*a", "!!binary ", "<<: ", "%", "../", "-----BEGIN CERTIFICATE-----\n"],
].map((text) => Buffer.from(text));
const NOT_UTF_8 = [
  [0xff],
  [0xc3],
  [0xed, 0xa0, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0xc0, 0x80],
];

const oddBytes = fc.constantFrom(...ODD_BYTES, ...NOT_UTF_8.map((bytes) => Buffer.from(bytes)));

const byteMutation = fc.oneof(
  fc.record({ type: fc.constant("flip"), at: place, bits: fc.integer({ min: 1, max: 255 }) }),
  fc.record({ type: fc.constant("cut"), at: place, length }),
  fc.record({ type: fc.constant("end"), at: place }),
  fc.record({ type: fc.constant("insert"), at: place, bytes: oddBytes }),
  fc.record({
    type: fc.constant("repeat"),
    at: place,
    length,
    times: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({ type: fc.constant("splice"), at: place, length, from: place, document: place }),
);
type ByteMutation = typeof byteMutation extends fc.Arbitrary<infer M> ? M : never;

/** Documents of a corpus with a few of their bytes turned, cut, repeated, or taken from another one. */
export function mutatedBytes(corpus: readonly (string | Uint8Array)[]): fc.Arbitrary<Buffer> {
  const documents = corpus.map((document) => Buffer.from(document));
  return fc
    .record({
      document: fc.constantFrom(...documents),
      mutations: fc.array(byteMutation, { maxLength: 6 }),
    })
    .map(({ document, mutations }) =>
      mutations.reduce<Buffer>(
        (bytes, mutation) => mutateBytes(bytes, mutation, documents),
        document,
      ),
    );
}

function mutateBytes(bytes: Buffer, mutation: ByteMutation, documents: readonly Buffer[]): Buffer {
  const at = mutation.at % (bytes.length + 1);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (mutation.type) {
    case "flip":
      return Buffer.concat([
        before,
        after.subarray(0, 1).map((byte) => byte ^ mutation.bits),
        after.subarray(1),
      ]);
    case "cut":
      return Buffer.concat([before, after.subarray(mutation.length)]);
    case "end":
      return before;
    case "insert":
      return Buffer.concat([before, mutation.bytes, after]);
    case "repeat": {
      const piece = after.subarray(0, mutation.length);
      return Buffer.concat([before, ...Array<Buffer>(mutation.times).fill(piece), after]);
    }
    case "splice": {
      const other = documents[mutation.document % documents.length] ?? bytes;
      const from = mutation.from % (other.length + 1);
      return Buffer.concat([before, other.subarray(from, from + mutation.length), after]);
    }
  }
}

/** Values of every type that JSON has, most of which no field wants. */
const ODD_VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    1,
    -1,
    0.5,
    1e300,
    2 ** 53,
    "",
    " ",
    "0",
    "1e9",
    "null",
    "\0",
    "\u{202e}",
  ],
  ...["\ud800", "x".repeat(300), [], {}, [[]], [null], [""], [0], { "": null }, { a: { b: [] } }],
];

const nodeMutation = fc.oneof(
  fc.record({ type: fc.constant("replace"), node: place, value: fc.constantFrom(...ODD_VALUES) }),
  fc.record({ type: fc.constant("remove"), node: place }),
  fc.record({ type: fc.constant("copy"), node: place, from: place }),
  fc.record({ type: fc.constant("wrap"), node: place, isList: fc.boolean() }),
);
type NodeMutation = typeof nodeMutation extends fc.Arbitrary<infer M> ? M : never;

/** Documents of a corpus with a few of their values replaced, removed, copied or wrapped. */
export function mutatedValues(corpus: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc
    .record({
      document: fc.constantFrom(...corpus),
      mutations: fc.array(nodeMutation, { minLength: 1, maxLength: 4 }),
    })
    .map(({ document, mutations }) => {
      const root = { document: structuredClone(document) };
      for (const mutation of mutations) mutateNode(root, mutation);
      return root.document;
    });
}

/** A place in a document where a value is. */
interface Slot {
  readonly holder: Record<string, unknown>;
  readonly name: string;
}

function mutateNode(root: { document: unknown }, mutation: NodeMutation): void {
  const slots = [...slotsOf(root)];
  const slot = slots[mutation.node % slots.length];
  if (slot === undefined) return;
  const { holder, name } = slot;
  switch (mutation.type) {
    case "replace":
      holder[name] = structuredClone(mutation.value);
      return;
    case "remove":
      if (Array.isArray(holder)) holder.splice(Number(name), 1);
      else delete holder[name];
      return;
    case "copy": {
      const from = slots[mutation.from % slots.length];
      holder[name] = structuredClone(from?.holder[from.name]);
      return;
    }
    case "wrap":
      holder[name] = mutation.isList ? [holder[name]] : { wrapped: holder[name] };
  }
}

function* slotsOf(value: unknown): Generator<Slot> {
  if (typeof value !== "object" || value === null) return;
  // What JSON can say has only keys of its own, and a list's are its indices.
  const holder = value as Record<string, unknown>;
  for (const name of Object.keys(holder)) {
    yield { holder, name };
    yield* slotsOf(holder[name]);
  }
}
