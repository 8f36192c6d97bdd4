import { expect, test } from "bun:test";
import fc from "fast-check";
import { endpointUrl, frontendPort } from "../../src/directory/endpoint-urls.ts";
import { eventOf, pageOf } from "../../src/kubernetes/decode.ts";
import { karmada } from "../../src/kubernetes/karmada.ts";
import { LineSplitter } from "../../src/kubernetes/lines.ts";
import { mcs } from "../../src/kubernetes/mcs.ts";
import type { EndpointSlice } from "../../src/kubernetes/slice-api.ts";
import { SliceIndex } from "../../src/kubernetes/slices.ts";
import { originUrl } from "../../src/pools/pool.ts";
import { FUZZ_DEADLINE_MS, fuzz, mutatedBytes, mutatedValues } from "../support/fuzz.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { endpointsAt, karmadaSlice, mcsSlice, podAt } from "../support/slices.ts";

const PORTS = [{ name: "http", port: 8000, appProtocol: "http" }];
const SLICES = [
  mcsSlice("west", "mocker-pool-relay", { endpoints: endpointsAt("10.1.0.1", "10.1.0.2") }),
  mcsSlice("west", "mocker-frontend", { endpoints: endpointsAt("2001:db8::1"), ports: PORTS }),
  mcsSlice("west", "global-router", { endpoints: [podAt("r-0", "10.3.0.1")], ports: PORTS }),
  karmadaSlice("west", "mocker-frontend", { endpoints: endpointsAt("10.2.0.1"), ports: PORTS }),
  karmadaSlice("west", "global-router", {
    endpoints: [{ ...podAt("r-0", "10.3.0.1"), conditions: { ready: null }, hostname: "r" }],
    ports: [{ port: 8080 }],
    original: "by-hand",
  }),
  mcsSlice("east", "mocker-frontend", { endpoints: null, ports: null, annotations: { a: "b" } }),
];
const PAGES = [
  { metadata: { resourceVersion: "7" }, items: SLICES },
  { metadata: { resourceVersion: "7", continue: "next" }, items: SLICES.slice(0, 1) },
  { metadata: { resourceVersion: "7" }, items: null },
];
const EVENTS = [
  ...SLICES.map((object) => ({ type: "ADDED", object })),
  { type: "DELETED", object: SLICES[0] },
  { type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } },
  { type: "ERROR", object: { code: 410, reason: "Expired", message: "too old" } },
];

const json = (value: unknown) => JSON.stringify(value);
/** Documents that are not quite right, in their values or in their bytes. */
const mutated = (corpus: readonly unknown[]) =>
  fc.oneof(
    mutatedValues(corpus).map((value) => String(json(value))),
    mutatedBytes(corpus.map(json)).map(String),
  );

/** What `read` makes of a text; undefined where it throws an Error, as it may. */
function readOrRefuse<T>(read: (text: string) => T, text: string): T | undefined {
  try {
    return read(text);
  } catch (error) {
    // A fault of the program's own is one of these.
    if (error instanceof Error && !(error instanceof TypeError)) return undefined;
    throw error;
  }
}

/** Takes slices in, and checks that all that is made of them is right. */
function checkUse(slices: readonly EndpointSlice[]): void {
  for (const rule of [mcs, karmada]) {
    const index = new SliceIndex({
      rule,
      routers: { namespace: "dynamo", service: "global-router" },
      changed() {},
      log: recordedLog().log,
    });
    index.addPool("west");
    index.replace(slices);
    for (const slice of slices) index.put(slice);
    for (const service of index.services()) {
      for (const { addresses, pods, ports } of index.endpointsOf(service)) {
        for (const pod of pods) expect(pod).toBeString();
        for (const port of [...ports, frontendPort(ports)]) {
          if (port === undefined) continue;
          expect(port.name).toBeString();
          for (const address of addresses) {
            const url = endpointUrl(address, port);
            expect(originUrl(url)).toBe(url);
          }
        }
      }
    }
    for (const slice of slices) index.remove(slice);
    expect([...index.services()]).toEqual([]);
    expect(index.counts().used).toBe(0);
  }
}

test(
  "a page of a list is refused, or all that it says can be used",
  () =>
    fuzz("pages of lists", mutated(PAGES), 1000, (text) => {
      const page = readOrRefuse(pageOf, text);
      if (page === undefined) return;
      expect(page.resourceVersion).toBeString();
      expect(["string", "undefined"]).toContain(typeof page.continueToken);
      checkUse(page.slices);
    }),
  FUZZ_DEADLINE_MS,
);

test(
  "a line of a watch is refused, or all that it says can be used",
  () =>
    fuzz("lines of watches", mutated(EVENTS), 1000, (text) => {
      const event = readOrRefuse(eventOf, text);
      if (event === undefined) return;
      if (event.type === "ERROR") {
        expect(event.status.message).toBeString();
      } else if (event.type === "BOOKMARK") {
        expect(event.resourceVersion).toBeString();
      } else {
        expect(event.slice.metadata.resourceVersion).toBeString();
        checkUse([event.slice]);
      }
    }),
  FUZZ_DEADLINE_MS,
);

test(
  "the lines of a watch are the same in whatever pieces its bytes come",
  () =>
    fuzz(
      "pieces of watches",
      fc.record({
        bytes: mutatedBytes([EVENTS.map(json).join("\n"), "\n\n\r\n", "é\u{2028}\n"]),
        sizes: fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 8 }),
      }),
      300,
      ({ bytes, sizes }) => {
        const splitter = new LineSplitter(bytes.length);
        const lines: string[] = [];
        for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
          const size = sizes[piece % sizes.length] ?? 1;
          lines.push(...splitter.push(bytes.subarray(at, at + size)));
          at += size;
        }
        lines.push(splitter.take());
        expect(lines).toEqual(bytes.toString().split("\n"));
      },
    ),
  FUZZ_DEADLINE_MS,
);
