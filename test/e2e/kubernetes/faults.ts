import { expect, test } from "bun:test";
import {
  type ApiFault,
  answerWith,
  endAtOnce,
  errorEvent,
  type FakeApiServer,
  halfPage,
  hang,
  onLaterPages,
  refuse,
  reset,
  sendsLine,
  silent,
  throttle,
} from "../../support/fake-api-server.ts";
import {
  answerOf,
  frontendsOf,
  imported,
  objectOf,
  relaysOf,
  Scene,
  type SceneOptions,
  WEST,
} from "../../support/imports.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { endpointsAt, mcsSlice, podAt } from "../../support/slices.ts";
import { lists, names, pausesOf, Relays, type Sample, Watch } from "../../support/watch.ts";
import { expectOnlyReads } from "./joins.ts";

/** Long enough for the third wait or so after a failure. */
const FAULT_MS = 5000;
/** What the reference allows a list that nobody keeps up to date. */
const CURRENT_MS = 30_000;
const LONG_MS = 35_000;
/** The longest wait after a failure, and a bit. */
const PATIENT_MS = 45_000;
const DEADLINE_MS = 120_000;

interface Case {
  /** What becomes of requests from the end of the watch on. */
  readonly breaks: (fake: FakeApiServer) => void | Promise<void>;
  /** Whether the versions from before are gone, so that only a list tells what has changed. */
  readonly isExpired?: boolean;
  /** Puts things in order where `FakeApiServer.mend` does not. */
  readonly mends?: (fake: FakeApiServer) => Promise<void>;
  /** What the log says meanwhile. */
  readonly says?: RegExp;
}

function forLists(fault: ApiFault, says?: RegExp): Case {
  return { breaks: (fake) => fake.break(fault, "list"), isExpired: true, ...saying(says) };
}

function forWatches(fault: ApiFault, says?: RegExp): Case {
  return { breaks: (fake) => fake.break(fault, "watch"), ...saying(says) };
}

function forAll(fault: ApiFault, says?: RegExp): Case {
  return { breaks: (fake) => fake.break(fault, "watch", "list"), ...saying(says) };
}

function saying(says: RegExp | undefined): Pick<Case, "says"> {
  return says === undefined ? {} : { says };
}

const error500 = refuse(500, "InternalError", { message: "etcdserver: no leader" });
const forbidden = refuse(403, "Forbidden");
const unauthorized = refuse(401, "Unauthorized");
const notJson = sendsLine('{"type":"ADDED","object":{"metadata":');

const CASES: Readonly<Record<string, Case>> = {
  "lists hang": forLists(hang),
  "watches hang": forWatches(hang),
  "lists fail with 500": forLists(error500, /failed at list with 500 .*no leader/),
  "watches fail with 500": forWatches(error500, /failed at watch with 500 .*no leader/),
  "lists are forbidden": forLists(
    forbidden,
    /WARN.*fault=denied.*forbids list on endpointslices\.discovery\.k8s\.io.*grant get, list and watch/,
  ),
  "watches are forbidden": forWatches(
    forbidden,
    /WARN.*fault=denied.*forbids watch on endpointslices\.discovery\.k8s\.io.*grant get, list and watch/,
  ),
  "nothing is authorized": forAll(
    unauthorized,
    /WARN.*fault=denied.*does not accept the token .*with 401/,
  ),
  "lists are reset": forLists(reset, /WARN.*fault=error.*list/),
  "watches are reset": forWatches(reset, /WARN.*fault=error.*watch/),
  "lists break off half-way, by an end": forLists(halfPage("end"), /broke its answer to list off/),
  "lists break off half-way, by a reset": forLists(
    halfPage("reset"),
    /broke its answer to list off/,
  ),
  "lists fail at their second page": forLists(onLaterPages(error500), /failed at list with 500/),
  "lists are gone at their second page": forLists(
    onLaterPages(refuse(410, "Expired")),
    /fault=expired.*no longer has the version that list asked for/,
  ),
  "lists are not JSON": forLists(
    answerWith(200, "<html>"),
    /answered list with something that can't be read/,
  ),
  "versions are gone once, by an event": {
    breaks(fake) {
      fake.expiredAs = "event";
    },
    isExpired: true,
  },
  "versions are gone once, by a status": {
    breaks(fake) {
      fake.expiredAs = "status";
    },
    isExpired: true,
  },
  "versions are always gone, by an event": forWatches(
    errorEvent(410, "Expired"),
    /fault=expired.*no longer has the version that watch asked for/,
  ),
  "versions are always gone, by a status": forWatches(
    refuse(410, "Expired"),
    /fault=expired.*no longer has the version that watch asked for/,
  ),
  "watches send a line that is no JSON": forWatches(
    notJson,
    /answered watch with something that can't be read/,
  ),
  "watches send an ERROR event": forWatches(
    errorEvent(500, "InternalError", "etcdserver: no leader"),
    /failed at watch with 500 .*no leader/,
  ),
  "watches send nothing": forWatches(silent),
  "watches end at once": forWatches(
    endAtOnce,
    /WARN.*fault=end.*the API server ended the watch after/,
  ),
  "all is throttled": forAll(throttle, /asks for fewer requests, with 429/),
  "connections are refused": {
    breaks: (fake) => fake.stop(),
    mends: (fake) => fake.startAgain(),
    says: /WARN.*fault=error/,
  },
};

const ROUTERS = '{"routers":[{"replica":"aws-west/r-0","url":"http://10.3.0.1:8080/"}]}';

/** Registers pools, starts a service, and waits until it lists two of them. */
async function listing(options: SceneOptions = {}, moreSlices = 0) {
  const scene = await Scene.start({
    ...options,
    async prepare(fake) {
      await options.prepare?.(fake);
      for (let n = 0; n < moreSlices; n += 1) {
        fake.put(objectOf(mcsSlice("noise", `noise-${n}-pool-relay`)));
      }
    },
  });
  scene.put(
    ...["stays", "goes"].flatMap((name) => [relaysOf("mcs", name), frontendsOf("mcs", name)]),
    imported("mcs", WEST, "global-router", {
      endpoints: [podAt("r-0", "10.3.0.1")],
      ports: [{ port: 8080 }],
    }),
  );
  const pools = ["stays", "goes", "comes"].map((name) => poolNamed(name));
  const relays = new Relays(scene.url, pools, 700);
  const watch = new Watch(scene.url, 150);
  await watch.for("a complete list of both", ({ list }) =>
    Boolean(list?.complete && Bun.deepEquals(names(list), ["goes", "stays"])),
  );
  return {
    scene,
    watch,
    /** Another pool gets its relay, and one loses it. */
    change() {
      scene.put(relaysOf("mcs", "comes", { endpoints: endpointsAt("10.1.0.3") }));
      scene.delete(relaysOf("mcs", "goes"));
    },
    hasChanged: ({ list }: Sample) => Bun.deepEquals(names(list), ["comes", "stays"]),
    async [Symbol.asyncDispose]() {
      await Promise.all([watch[Symbol.asyncDispose](), relays[Symbol.asyncDispose]()]);
      await scene[Symbol.asyncDispose]();
    },
  };
}

/** Checks what held at all times: every answer was a list, with the pool that never had a fault. */
function expectNothingLost(samples: readonly Sample[]): void {
  for (const { status, body, list } of samples) {
    expect(status, body).toBe(200);
    expect(lists(list, "stays"), body).toBe(true);
  }
}

/** Checks that requests were at most about two a second, of a list of so many pages. */
function expectNoStorm({ fake }: Scene, sinceMs: number): void {
  const requests = fake.requests.filter(({ atMs }) => atMs >= sinceMs);
  const secs = (Date.now() - sinceMs) / 1000;
  expect(requests.length, `in ${secs} s`).toBeLessThanOrEqual(2 * secs + 4);
}

export function faultTests(): void {
  // First, since they take longest.
  const LONG_CASES: Readonly<Record<string, Case>> = {
    "watches hang": forWatches(hang),
    "watches end at once": forWatches(endAtOnce),
    "watches are forbidden": forWatches(forbidden),
    "connections are refused": CASES["connections are refused"] ?? forAll(reset),
  };
  for (const [what, { breaks, mends }] of Object.entries(LONG_CASES)) {
    test.concurrent(
      `where ${what} for longer than 30 s, the list is complete until then and not after, and again when all is well`,
      async () => {
        await using given = await listing();
        const { scene, watch, change, hasChanged } = given;
        const { fake, service } = scene;
        const from = watch.samples.length;
        const pauses = pausesOf(service);
        const atMs = Date.now();
        fake.endWatches();
        await breaks(fake);
        change();
        const { answeredAtMs } = await watch.for(
          "a list that may lack something",
          ({ list }) => list?.complete === false,
          PATIENT_MS,
        );
        if (pausesOf(service) === pauses) {
          expect(answeredAtMs - atMs).toBeGreaterThanOrEqual(CURRENT_MS);
        }
        const lostFrom = watch.samples.length;
        await Bun.sleep(Math.max(0, atMs + LONG_MS - Date.now()));
        const since = watch.samples.slice(lostFrom);
        expect(since.length).toBeGreaterThan(5);
        expect(since.filter(({ list }) => list?.complete)).toEqual([]);
        expect(await answerOf(service.url, "/healthz")).toEqual([200, ""]);
        expect(await answerOf(service.url, "/routers")).toEqual([200, ROUTERS]);
        expectNoStorm(scene, atMs);

        fake.mend();
        await mends?.(fake);
        fake.dropAll();
        await watch.for(
          "a complete list of what there is now",
          (sample) => Boolean(sample.list?.complete && hasChanged(sample)),
          PATIENT_MS,
        );
        // It was out of step at no time that it called itself complete.
        expectNothingLost(watch.samples.slice(from));
        expectNoStorm(scene, atMs);
      },
      DEADLINE_MS,
    );
  }

  for (const [what, { breaks, isExpired, mends, says }] of Object.entries(CASES)) {
    test.concurrent(
      `where ${what}, the last list is served and nothing is lost, and soon after all is as it was`,
      async () => {
        await using given = await listing({}, what.includes("second page") ? 600 : 0);
        const { scene, watch, change, hasChanged } = given;
        const { fake, service } = scene;
        const from = watch.samples.length;
        const pauses = pausesOf(service);
        const atMs = Date.now();
        const asked = fake.requests.length;
        fake.endWatches();
        await breaks(fake);
        change();
        if (isExpired) fake.expire();
        if (says !== undefined) await service.says(says);
        await Bun.sleep(Math.max(0, atMs + FAULT_MS - Date.now()));
        if (mends === undefined) {
          expect(fake.requests.length).toBeGreaterThan(asked);
        }
        expect(await answerOf(service.url, "/healthz")).toEqual([200, ""]);
        expect(await answerOf(service.url, "/routers")).toEqual([200, ROUTERS]);
        expectNoStorm(scene, atMs);

        fake.mend();
        await mends?.(fake);
        // What hangs would go on doing so.
        fake.dropAll();
        await watch.for("what has changed meanwhile", (sample) => hasChanged(sample));
        // The watch is one again.
        scene.put(relaysOf("mcs", "goes"));
        await watch.for("what changes then", ({ list }) => lists(list, "goes"));
        const samples = watch.samples.slice(from);
        expectNothingLost(samples);
        if (pausesOf(service) === pauses) {
          expect(samples.filter(({ list }) => !list?.complete)).toEqual([]);
        }
        expectNoStorm(scene, atMs);
        expectOnlyReads(scene);
        expect(service.isRunning).toBe(true);
        expect(await answerOf(service.url, "/healthz")).toEqual([200, ""]);
      },
      DEADLINE_MS,
    );
  }

  test.concurrent("a watch that dribbles byte by byte is heard all the same", async () => {
    await using given = await listing({
      prepare(fake) {
        fake.pieceBytes = 1;
      },
    });
    const from = given.watch.samples.length;
    given.change();
    await given.watch.for("the change", given.hasChanged);
    expectNothingLost(given.watch.samples.slice(from));
    expect(given.scene.service.stderr).not.toMatch(/WARN(?!.*not running)/);
  });
}
