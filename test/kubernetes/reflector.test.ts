import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Reflector, type SliceSink } from "../../src/kubernetes/reflector.ts";
import { ApiError } from "../../src/kubernetes/slice-api.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { makeSlice, type Script, ScriptedSliceApi } from "../support/scripted-slice-api.ts";
import { SteppedClock } from "../support/stepped-clock.ts";

const refused = new ApiError("error", "connection refused");
const denied = new ApiError("denied", "may not list endpointslices");
const expired = new ApiError("expired", "too old resource version");
const never = Number.POSITIVE_INFINITY;
/** Three pages of them. */
const manyNames = Array.from({ length: 1200 }, (_, index) => `slice-${index}`);
/** No more than two a second in any 30 s, however they are spread in it. */
const WINDOW_MS = 30_000;
const MOST_REQUESTS = 60;
/** A request that hangs to its deadline, the longest wait, and a bit. */
const RECOVERY_MS = 61_000;
/** How long a watch may be silent before that. */
const SILENCE_MS = 305_000;

/** What may become of a request, near the limits that the reflector has. */
const anyScript: fc.Arbitrary<Script> = fc.record(
  {
    answerAfterMs: fc.constantFrom(0, 1, 500, 5000, 19_999, 20_000, 29_999, never),
    refusal: fc.constantFrom<Error[]>(
      refused,
      denied,
      expired,
      new TypeError("a fault of the program"),
    ),
    lastsMs: fc.constantFrom(0, 1, 999, 1000, 1001, 4999, 5000, 5001, 20_000, 60_000),
    ending: fc.constantFrom<("end" | "silence" | Error)[]>(
      "end",
      "silence",
      refused,
      denied,
      expired,
    ),
  },
  { requiredKeys: [] },
);

const anyScripts = fc.array(anyScript, { minLength: 1, maxLength: 12 });
const anySpread = fc.constantFrom(0, 0.5, 0.999_999);

/** The most requests in any window. */
function busiest({ requests }: ScriptedSliceApi): number {
  let first = 0;
  let most = 0;
  for (const [last, { atMs }] of requests.entries()) {
    while ((requests[first]?.atMs ?? atMs) <= atMs - WINDOW_MS) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** A reflector of slices by these names. Every spread is at its middle. */
function make(names: readonly string[] = ["a", "b"]) {
  const clock = new SteppedClock();
  const { log, lines } = recordedLog();
  const api = new ScriptedSliceApi(clock);
  for (const name of names) api.put(name);
  const known = new Map<string, string>();
  /** What the sink was told, in order. */
  const told: string[] = [];
  const sink: SliceSink = {
    replace(slices) {
      known.clear();
      for (const { metadata } of slices) known.set(metadata.name, metadata.resourceVersion);
      told.push(`replace ${slices.length}`);
    },
    put({ metadata }) {
      known.set(metadata.name, metadata.resourceVersion);
      told.push(`put ${metadata.name}`);
    },
    remove({ metadata }) {
      known.delete(metadata.name);
      told.push(`remove ${metadata.name}`);
    },
  };
  const reflector = new Reflector({ api, sink, clock, log });
  const startMs = clock.monotonicMs();
  return {
    clock,
    api,
    sink,
    reflector,
    lines,
    known,
    told,
    run: (ms: number) => clock.run(ms),
    /** The requests so far, each with its time since the start in milliseconds. */
    asked: () => api.requests.map(({ verb, atMs }) => `${verb} ${Math.round(atMs - startMs)}`),
    /** The versions that watches went on from. */
    versions: () => api.requests.flatMap(({ resourceVersion }) => resourceVersion ?? []),
    warnings: () => lines.filter(({ level }) => level === "warn"),
    /** Whether the sink knows the slices as they are. */
    isInStep: () =>
      known.size === api.slices.size &&
      [...api.slices].every(([name, { metadata }]) => known.get(name) === metadata.resourceVersion),
  };
}

/** One that has listed and watches. */
async function watching(names?: readonly string[]) {
  const made = make(names);
  await made.reflector.start();
  await made.run(0);
  expect(made.asked()).toEqual(["list 0", "watch 0"]);
  made.api.requests.length = 0;
  made.told.length = 0;
  return made;
}

/** Uses each script for one request, and none for the rest. */
function inTurn(...scripts: (Script | undefined)[]) {
  return () => scripts.shift();
}

describe("a list", () => {
  test("replaces everything at once, and the watch goes on from its resource version", async () => {
    const { reflector, api, told, versions, isInStep, run } = make();
    expect(reflector.isSynced).toBe(false);
    await reflector.start();
    expect(reflector.isSynced).toBe(true);
    expect(told).toEqual(["replace 2"]);
    expect(isInStep()).toBe(true);
    await run(0);
    expect(versions()).toEqual([api.version]);
  });

  test("comes in pages of 500", async () => {
    const { reflector, api, told, isInStep, run } = make(manyNames);
    await reflector.start();
    await run(0);
    expect(api.requests.map(({ verb, limit }) => `${verb} ${limit}`)).toEqual([
      "list 500",
      "list 500",
      "list 500",
      "watch undefined",
    ]);
    const tokens = api.requests.slice(0, 3).map(({ continueToken }) => continueToken);
    expect(new Set(tokens).size).toBe(3);
    expect(tokens[0]).toBeUndefined();
    expect(told).toEqual(["replace 1200"]);
    expect(isInStep()).toBe(true);
  });

  test("that may be empty is a list", async () => {
    const { reflector, told } = make([]);
    await reflector.start();
    expect(told).toEqual(["replace 0"]);
  });

  test("of which a page fails changes nothing, and begins again with the first page", async () => {
    const names = Array.from({ length: 600 }, (_, index) => `slice-${index}`);
    const { reflector, api, told, run, asked } = make(names);
    api.script = inTurn(undefined, { refusal: refused });
    void reflector.start();
    await run(0);
    expect(told).toEqual([]);
    expect(reflector.isSynced).toBe(false);
    await run(1200);
    expect(asked()).toEqual(["list 0", "list 0", "list 1200", "list 1200", "watch 1200"]);
    expect(api.requests[2]?.continueToken).toBeUndefined();
    expect(told).toEqual(["replace 600"]);
  });

  test("whose continue token has expired begins again at once, then backs off", async () => {
    const names = Array.from({ length: 600 }, (_, index) => `slice-${index}`);
    const { reflector, api, told, run, asked } = make(names);
    let left = 3;
    api.script = ({ continueToken }) => {
      if (continueToken !== undefined && left-- > 0) api.compact();
      return undefined;
    };
    void reflector.start();
    await run(3600);
    expect(asked()).toEqual(
      ["list 0", "list 0", "list 0", "list 0", "list 1200", "list 1200"].concat(
        // The fourth comes through.
        ["list 3600", "list 3600", "watch 3600"],
      ),
    );
    expect(told).toEqual(["replace 600"]);
  });

  test("that is denied is tried again, at the start too, and the log says so", async () => {
    const { reflector, api, run, warnings } = make();
    api.script = () => ({ refusal: denied });
    void reflector.start();
    await run(300_000);
    expect(reflector.isSynced).toBe(false);
    expect(warnings()[0]).toEqual({
      level: "warn",
      message: "the slices can't be read yet; trying again",
      fields: { fault: "denied", reason: "may not list endpointslices" },
    });
    api.script = () => undefined;
    await run(30_000);
    expect(reflector.isSynced).toBe(true);
  });

  test.each([
    ["heeds", true],
    ["does not heed", false],
  ])("that gets no answer is cut after 30 s, where the connection %s it", async (_, heeds) => {
    const { reflector, api, run, asked } = make();
    api.heedsSignals = heeds;
    api.script = inTurn({ answerAfterMs: never });
    void reflector.start();
    await run(29_999);
    expect(api.requests[0]?.signal.aborted).toBe(false);
    await run(1);
    expect(api.requests[0]?.signal.aborted).toBe(true);
    await run(1200);
    expect(asked()).toEqual(["list 0", "list 31200", "watch 31200"]);
  });

  test("may take 30 s for each page", async () => {
    const { reflector, api, run, told } = make(manyNames);
    api.script = () => ({ answerAfterMs: 29_999 });
    void reflector.start();
    await run(90_000);
    expect(told).toEqual(["replace 1200"]);
  });

  test("until there is one, the reason is the last error", async () => {
    const { reflector, api, run } = make();
    expect(reflector.unreadyReason()).toBe("the slices have not been read yet");
    api.script = inTurn({ refusal: refused }, { refusal: denied }, { answerAfterMs: never });
    void reflector.start();
    await run(0);
    expect(reflector.unreadyReason()).toBe("the slices have not been read yet: connection refused");
    await run(1200);
    expect(reflector.unreadyReason()).toBe(
      "the slices have not been read yet: may not list endpointslices",
    );
    await run(2400 + 30_000);
    expect(reflector.unreadyReason()).toBe(
      "the slices have not been read yet: nothing was heard for 30 s",
    );
    await run(30_000);
    expect(reflector.unreadyReason()).toBeUndefined();
    // Once synced is for ever.
    api.script = () => ({ refusal: refused });
    api.endWatches(expired);
    await run(300_000);
    expect(reflector.unreadyReason()).toBeUndefined();
    expect(reflector.isSynced).toBe(true);
  });
});

describe("a watch", () => {
  test("tells of what is added, changed and deleted", async () => {
    const { api, told, run, isInStep } = await watching();
    api.put("c");
    api.put("a");
    api.remove("b");
    await run(0);
    expect(told).toEqual(["put c", "put a", "remove b"]);
    expect(isInStep()).toBe(true);
  });

  test("takes ADDED of a known slice and MODIFIED of an unknown one as they are", async () => {
    const { api, reflector, told, run } = make([]);
    const [added, modified] = [makeSlice("known", "8"), makeSlice("unknown", "9")];
    api.watch = async () => ({
      async *[Symbol.asyncIterator]() {
        yield { type: "ADDED", slice: added };
        yield { type: "ADDED", slice: added };
        yield { type: "MODIFIED", slice: modified };
        await new Promise(() => {});
      },
    });
    await reflector.start();
    await run(0);
    expect(told).toEqual(["replace 0", "put known", "put known", "put unknown"]);
  });

  test("asks to be ended after 240 to 300 s", async () => {
    for (const [random, timeoutSecs] of [
      [0, 240],
      [0.5, 270],
      [0.9999, 300],
    ] as const) {
      const { api, clock, reflector, run } = make();
      clock.random = () => random;
      await reflector.start();
      await run(0);
      expect(api.requests[1]?.timeoutSecs).toBe(timeoutSecs);
    }
  });

  test("that ends in good order goes on at once, from the last version seen", async () => {
    const { api, run, asked, versions, told } = await watching();
    // An event's, a deletion's, a bookmark's.
    for (const change of [() => api.put("c"), () => api.remove("c"), () => api.bookmark()]) {
      change();
      await run(1000);
      api.endWatches("end");
      await run(0);
      expect(versions().at(-1)).toBe(api.version);
    }
    expect(asked()).toEqual(["watch 1000", "watch 2000", "watch 3000"]);
    expect(told).toEqual(["put c", "remove c"]);
  });

  test("that lasted less than a second counts as a failure", async () => {
    const { api, run, asked } = await watching();
    await run(999);
    api.endWatches("end");
    await run(0);
    expect(asked()).toEqual([]);
    await run(1200);
    expect(asked()).toEqual(["watch 2199"]);
    // Again and again, whatever it sends.
    api.requests.length = 0;
    api.script = () => {
      api.put("a");
      return { lastsMs: 1 };
    };
    api.endWatches("end");
    await run(60_000);
    expect(asked()).toEqual([
      "watch 4599",
      "watch 9400",
      "watch 19001",
      "list 38202",
      "watch 38202",
      "list 60703",
      "watch 60703",
    ]);
  });

  test("that fails in the stream goes on from the last version, with no list", async () => {
    const { api, run, asked, versions, told, isInStep } = await watching();
    api.put("c");
    const { version } = api;
    api.endWatches(refused);
    await run(0);
    expect(told).toEqual(["put c"]);
    api.put("missed");
    await run(1200);
    expect(asked()).toEqual(["watch 1200"]);
    expect(versions()).toEqual([version]);
    expect(told).toEqual(["put c", "put missed"]);
    expect(isInStep()).toBe(true);
  });

  test("that fails in a way nobody thought of is a failure like any", async () => {
    const { api, run, asked } = await watching();
    api.endWatches(new TypeError("undefined is not a function"));
    await run(1200);
    expect(asked()).toEqual(["watch 1200"]);
  });

  test.each([
    ["as a status", inTurn({ refusal: refused }, { refusal: expired })],
    ["in the stream", inTurn({ refusal: refused }, { lastsMs: 0, ending: expired })],
  ])("that gets a 410 %s lists again at once", async (_, script) => {
    const { api, run, asked, told, isInStep } = await watching();
    api.script = script;
    api.endWatches(refused);
    api.remove("a");
    api.put("b");
    api.put("c");
    await run(1199 + 2400);
    api.compact();
    await run(1);
    expect(asked()).toEqual(["watch 1200", "watch 3600", "list 3600", "watch 3600"]);
    // All at once, and what was deleted meanwhile is gone.
    expect(told.at(-1)).toBe("replace 2");
    expect(isInStep()).toBe(true);
  });

  test("that gets 410 again and again backs off, until one has lasted 5 s", async () => {
    const { api, run, asked } = await watching();
    let lastsMs = 0;
    api.script = ({ verb }) => (verb === "watch" ? { lastsMs, ending: expired } : undefined);
    api.endWatches(expired);
    await run(8400);
    const rounds = [0, 1200, 3600, 8400].flatMap((ms) => [`list ${ms}`, `watch ${ms}`]);
    expect(asked()).toEqual(rounds);
    lastsMs = 4999;
    await run(9600);
    api.requests.length = 0;
    lastsMs = 5000;
    await run(4999 + 19_200);
    expect(asked()).toEqual(["list 42199", "watch 42199"]);
    await run(5000);
    expect(asked().slice(2)).toEqual(["list 47199", "watch 47199"]);
  });

  test("that is silent for longer than its time-out is cut, and listed again at once", async () => {
    const { api, run, asked, reflector } = make();
    api.script = inTurn(undefined, { lastsMs: 10_000, ending: "silence" });
    await reflector.start();
    await run(9000);
    api.bookmark();
    await run(275_000 - 1);
    expect(asked()).toEqual(["list 0", "watch 0"]);
    await run(1);
    expect(api.requests[1]?.signal.aborted).toBe(true);
    expect(asked()).toEqual(["list 0", "watch 0", "list 284000", "watch 284000"]);
  });

  test.each([
    ["bookmarks", (api: ScriptedSliceApi) => api.bookmark()],
    ["events", (api: ScriptedSliceApi) => api.put("a")],
  ])("is not silent while there are %s now and then", async (_, sound) => {
    const { api, run, reflector, asked } = make();
    api.bookmarkEveryMs = never;
    // It goes on for longer than it was asked to.
    api.script = () => ({ lastsMs: never });
    await reflector.start();
    for (let rounds = 0; rounds < 10; rounds += 1) {
      await run(274_999);
      sound(api);
    }
    expect(asked()).toEqual(["list 0", "watch 0"]);
  });

  test.each([
    ["heeds", true],
    ["does not heed", false],
  ])("that gets no answer is cut after 20 s, where the connection %s it", async (_, heeds) => {
    const { api, run, asked, reflector } = make();
    api.heedsSignals = heeds;
    api.script = inTurn(undefined, { answerAfterMs: never });
    await reflector.start();
    await run(19_999);
    expect(api.requests[1]?.signal.aborted).toBe(false);
    await run(1);
    expect(api.requests[1]?.signal.aborted).toBe(true);
    await run(1200);
    expect(asked()).toEqual(["list 0", "watch 0", "watch 21200"]);
  });

  test("that is answered after it was cut is no watch", async () => {
    const { api, run, reflector, told } = make();
    api.heedsSignals = false;
    api.script = inTurn(undefined, { answerAfterMs: 20_500 }, { answerAfterMs: never });
    await reflector.start();
    await run(21_000);
    api.put("c");
    await run(10_000);
    expect(told).toEqual(["replace 2"]);
    expect(reflector.isCurrent()).toBe(false);
  });

  test.each([
    ["30 s or less goes on from the last version", 30_000, ["watch 30000"]],
    ["over 30 s begins with a list", 30_001, ["list 30001", "watch 30001"]],
  ])("after %s", async (_, gapMs, expected) => {
    const { api, clock, run, asked } = await watching();
    await run(5000);
    api.endWatches(refused);
    await run(0);
    clock.pause(gapMs);
    clock.wake();
    await run(0);
    const sinceTheEnd = asked().map((line) =>
      line.replace(/\d+/, (ms) => String(Number(ms) - 5000)),
    );
    expect(sinceTheEnd).toEqual(expected);
  });

  test("that never begins is preceded by a list each time", async () => {
    const { api, run, asked } = await watching();
    api.script = ({ verb }) => (verb === "watch" ? { refusal: refused } : undefined);
    api.endWatches(refused);
    await run(60_000);
    const waits = [1200, 3600, 8400, 18_000];
    const rounds = [37_200, 59_700].flatMap((ms) => [`list ${ms}`, `watch ${ms}`]);
    expect(asked()).toEqual([...waits.map((ms) => `watch ${ms}`), ...rounds]);
  });

  test("begins after the first list, however long that has taken", async () => {
    const { api, run, asked, reflector } = make();
    api.script = inTurn({ answerAfterMs: never }, { answerAfterMs: 20_000 });
    void reflector.start();
    await run(60_000);
    expect(asked()).toEqual(["list 0", "list 31200", "watch 51200"]);
    expect(reflector.isCurrent()).toBe(true);
  });
});

describe("a failure", () => {
  test.each([
    ["shortest", 0, [800, 1600, 3200, 6400, 12_800, 15_000, 15_000]],
    ["longest", 0.999_999, [1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]],
  ])("is followed by a wait of 0.8 to 30 s, here the %s", async (_, random, waits) => {
    const { api, clock, run, reflector } = make();
    clock.random = () => random;
    api.script = () => ({ refusal: refused });
    void reflector.start();
    await run(400_000);
    const times = api.requests.map(({ atMs }) => atMs);
    const gaps = times.slice(1).map((ms, index) => Math.round(ms - (times[index] ?? ms)));
    expect(gaps.slice(0, waits.length)).toEqual(waits);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(30_000);
  });

  test("after a watch of 5 s is a first failure again, after a shorter one it is not", async () => {
    const { api, run, asked } = await watching();
    let lastsMs = 4999;
    api.script = inTurn({ refusal: refused }, { refusal: refused });
    api.endWatches(refused);
    await run(8400);
    expect(asked()).toEqual(["watch 1200", "watch 3600", "watch 8400"]);
    api.script = () => ({ lastsMs, ending: refused });
    api.requests.length = 0;
    await run(4999);
    api.endWatches(refused);
    await run(9600);
    expect(asked()).toEqual(["watch 22999"]);
    lastsMs = 5000;
    await run(4999 + 19_200);
    await run(5000 + 1200);
    expect(asked().slice(1)).toEqual(["watch 47198", "watch 53398"]);
  });

  test.each([
    ["refuses", { refusal: refused }],
    ["denies", { refusal: denied }],
    ["hangs", { answerAfterMs: never }],
    ["ends each watch at once", { lastsMs: 0 }],
    ["breaks each watch off at once", { lastsMs: 0, ending: refused }],
    ["ends each watch after a second", { lastsMs: 1000 }],
    ["breaks each watch off after a second", { lastsMs: 1000, ending: refused }],
    ["breaks each watch off once it is healthy", { lastsMs: 5000, ending: refused }],
    ["has always forgotten the version", { lastsMs: 0, ending: expired }],
    ["forgets the version within a second", { lastsMs: 1000, ending: expired }],
    ["forgets the version once the watch is healthy", { lastsMs: 5000, ending: expired }],
    ["falls silent", { lastsMs: 0, ending: "silence" }],
  ] as const)("makes no storm in an hour in which the server %s", async (_, script) => {
    const { api, run, reflector, isInStep } = make(manyNames);
    await reflector.start();
    const isOfWatches = "lastsMs" in script;
    api.script = ({ verb }) => (verb === "list" && isOfWatches ? undefined : script);
    api.endWatches(refused);
    await run(3_600_000);
    expect(api.requests.length).toBeGreaterThan(10);
    expect(busiest(api)).toBeLessThanOrEqual(MOST_REQUESTS);
    api.script = () => undefined;
    api.put("new");
    await run(RECOVERY_MS + SILENCE_MS);
    expect(isInStep()).toBe(true);
    expect(reflector.isCurrent()).toBe(true);
  });

  test("of any kind, in any order, makes no storm, and leaves the sink in step", async () => {
    await fc.assert(
      fc.asyncProperty(anyScripts, anySpread, async (scripts, random) => {
        const { api, clock, run, reflector, isInStep } = make(manyNames);
        clock.random = () => random;
        let turn = 0;
        api.script = () => scripts[turn++ % scripts.length];
        void reflector.start();
        for (let minutes = 0; minutes < 60; minutes += 1) {
          api.put(`new-${minutes % 7}`);
          await run(20_000);
          api.remove(`new-${minutes % 5}`);
          if (minutes % 10 === 0) api.compact();
          await run(40_000);
        }
        expect(busiest(api)).toBeLessThanOrEqual(MOST_REQUESTS);
        const isSilent = scripts.some(({ ending }) => ending === "silence");
        api.script = () => undefined;
        api.put("last");
        await run(RECOVERY_MS + (isSilent ? SILENCE_MS : 0));
        expect(isInStep()).toBe(true);
        expect(reflector.isSynced && reflector.isCurrent()).toBe(true);
        reflector.stop();
        api.endWatches("end");
      }),
      { numRuns: 200 },
    );
  });

  test.each([1000, 5000, 10_000])(
    "that lasted %d ms is over within twice that and two seconds",
    async (outageMs) => {
      for (const random of [0, 0.5, 0.999_999]) {
        const { api, run, clock, reflector, isInStep } = make();
        clock.random = () => random;
        await reflector.start();
        await run(5000);
        api.script = () => ({ refusal: refused });
        api.endWatches(refused);
        api.remove("a");
        await run(outageMs);
        api.script = () => undefined;
        await run(2 * outageMs + 2000 - outageMs);
        expect(isInStep()).toBe(true);
        reflector.stop();
      }
    },
  );
});

describe("the slices are current", () => {
  test("only once they are synced", async () => {
    const { reflector, run } = make();
    expect(reflector.isCurrent()).toBe(false);
    const synced = reflector.start();
    expect(reflector.isCurrent()).toBe(false);
    await synced;
    expect(reflector.isCurrent()).toBe(true);
    await run(3_600_000);
    expect(reflector.isCurrent()).toBe(true);
  });

  test.each([
    ["refuses", { refusal: refused }],
    ["denies", { refusal: denied }],
    ["hangs", { answerAfterMs: never }],
    ["ends each at once", { lastsMs: 0 }],
    ["fails in each within a second", { lastsMs: 999, ending: refused }],
  ])("for 30 s without a watch, where the server %s", async (_, script) => {
    const { api, run, reflector } = await watching();
    await run(100_000);
    api.script = () => script;
    api.endWatches("end");
    await run(30_000);
    expect(reflector.isCurrent()).toBe(true);
    await run(1);
    expect(reflector.isCurrent()).toBe(false);
    await run(600_000);
    expect(reflector.isCurrent()).toBe(false);
    api.script = () => undefined;
    await run(RECOVERY_MS);
    expect(reflector.isCurrent()).toBe(true);
  });

  test("and where they are not, the reason says for how long, and the last error", async () => {
    const { api, run, reflector } = make();
    expect(reflector.outdatedReason()).toBe("the slices have not been read yet");
    await reflector.start();
    await run(100_000);
    expect(reflector.outdatedReason()).toBeUndefined();
    api.script = () => ({ refusal: denied });
    api.endWatches("end");
    await run(30_000);
    expect(reflector.outdatedReason()).toBeUndefined();
    await run(12_000);
    expect(reflector.outdatedReason()).toBe(
      "the slices have not been watched for 42 s: may not list endpointslices",
    );
    api.script = () => undefined;
    await run(RECOVERY_MS);
    expect(reflector.outdatedReason()).toBeUndefined();
  });

  test("for 30 s from the start, where no watch begins at all, whatever is listed", async () => {
    const { api, run, reflector } = make();
    api.script = ({ verb }) => (verb === "watch" ? { refusal: expired } : undefined);
    await reflector.start();
    await run(30_000);
    expect(reflector.isCurrent()).toBe(true);
    await run(1);
    expect(reflector.isCurrent()).toBe(false);
    await run(600_000);
    expect(reflector.isCurrent()).toBe(false);
  });

  test("between a watch that ends and the next", async () => {
    const { api, run, reflector } = await watching();
    api.script = () => ({ answerAfterMs: 19_000 });
    for (let round = 0; round < 5; round += 1) {
      await run(2000);
      api.endWatches("end");
      await run(18_999);
      expect(reflector.isCurrent()).toBe(true);
      await run(1);
    }
    expect(reflector.isCurrent()).toBe(true);
  });

  test("no longer where a watch was silent, until there are a list and one that lasts", async () => {
    const { api, run, reflector } = await watching();
    api.script = () => ({ answerAfterMs: 1000 });
    api.endWatches("silence");
    await run(275_000 - 1);
    expect(reflector.isCurrent()).toBe(true);
    await run(1);
    expect(reflector.isCurrent()).toBe(false);
    await run(1000 + 1000 + 999);
    expect(reflector.isCurrent()).toBe(false);
    await run(1);
    expect(reflector.isCurrent()).toBe(true);
  });
});

describe("a process that could not run for ten minutes", () => {
  const pauseMs = 600_000;

  test("reads what came meanwhile, and the end of its watch", async () => {
    const { api, clock, run, told, asked, versions, reflector, warnings } = await watching();
    await run(1000);
    clock.pause(pauseMs);
    api.put("meanwhile");
    clock.wake();
    expect(reflector.isCurrent()).toBe(true);
    await run(0);
    expect(told).toEqual(["put meanwhile"]);
    expect(asked()).toEqual(["watch 601000"]);
    expect(versions()).toEqual([api.version]);
    expect(warnings()).toEqual([]);
  });

  test("goes on with a watch that is alive", async () => {
    const { api, clock, run, told, asked } = await watching();
    api.script = () => ({ lastsMs: never });
    await run(1000);
    api.endWatches("end");
    await run(1000);
    clock.pause(pauseMs);
    clock.wake();
    await run(4000);
    api.put("afterwards");
    await run(10_000);
    expect(told).toEqual(["put afterwards"]);
    expect(asked()).toEqual(["watch 1000"]);
  });

  test("cuts a watch that is dead 5 s later", async () => {
    const { api, clock, run, asked } = await watching();
    api.endWatches("silence");
    clock.pause(pauseMs);
    clock.wake();
    await run(4999);
    expect(asked()).toEqual([]);
    await run(1);
    expect(asked()).toEqual(["list 605000", "watch 605000"]);
  });

  test("takes the answer that came meanwhile", async () => {
    const { api, clock, run, asked, reflector } = make();
    api.script = inTurn({ answerAfterMs: 1000 }, { answerAfterMs: 1000 });
    void reflector.start();
    clock.pause(pauseMs);
    clock.wake();
    await run(0);
    expect(reflector.isSynced).toBe(true);
    clock.pause(pauseMs);
    clock.wake();
    await run(1000);
    expect(asked()).toEqual(["list 0", "watch 600000"]);
    expect(reflector.isCurrent()).toBe(true);
  });
});

describe("the log", () => {
  test("tells of the first list, and of no event, no end and no list after that", async () => {
    const { api, lines, run } = await watching();
    for (let hours = 0; hours < 3; hours += 1) {
      api.put("c");
      await run(3_600_000);
      api.endWatches(expired);
      await run(1000);
    }
    expect(lines.filter(({ level }) => level !== "debug")).toEqual([
      { level: "info", message: "the slices are read", fields: { slices: 2 } },
    ]);
  });

  test("tells why there is no list yet, once a minute", async () => {
    const { api, reflector, lines, run } = make();
    api.script = () => ({ refusal: refused });
    void reflector.start();
    await run(59_700);
    api.script = () => undefined;
    await run(30_000);
    expect(lines).toEqual([
      {
        level: "warn",
        message: "the slices can't be read yet; trying again",
        fields: { fault: "error", reason: "connection refused" },
      },
      { level: "info", message: "the slices are read", fields: { slices: 2 } },
    ]);
  });

  test("tells when the watch is lost, once a minute, and when there is one again", async () => {
    const { api, asked, lines, run } = await watching();
    lines.length = 0;
    api.script = () => ({ refusal: refused });
    api.endWatches(refused);
    await run(59_700);
    const lost = {
      level: "warn",
      message: "the slices can't be watched; the last state is served",
      fields: { fault: "error", reason: "connection refused" },
    };
    expect(lines).toEqual([lost]);
    await run(22_500);
    expect(lines).toEqual([lost, lost]);
    api.script = () => undefined;
    await run(22_500 + 5000);
    const again = { level: "info", message: "the slices are watched again", fields: {} };
    expect(lines).toEqual([lost, lost, again]);
    // Lost twice within a minute is lost once, and so is the return.
    api.endWatches(refused);
    await run(5000);
    api.endWatches(refused);
    await run(5000);
    expect(asked().slice(-2)).toEqual(["watch 110900", "watch 117100"]);
    expect(lines.filter(({ level }) => level !== "debug")).toEqual([lost, lost, again]);
  });

  test("tells of another kind of fault at once", async () => {
    const { api, run, warnings } = await watching();
    api.script = inTurn(
      { refusal: denied },
      { lastsMs: 20 },
      { refusal: expired },
      undefined,
      { refusal: expired },
      undefined,
    );
    api.endWatches(refused);
    await run(30_000);
    api.endWatches("silence");
    await run(300_000);
    expect(warnings().map(({ fields }) => fields)).toEqual([
      { fault: "error", reason: "connection refused" },
      { fault: "denied", reason: "may not list endpointslices" },
      { fault: "end", reason: "the API server ended the watch after 0.02 s" },
      { fault: "expired", reason: "too old resource version" },
      { fault: "silent", reason: "nothing was heard for 275 s" },
    ]);
  });
});

describe("a reflector that is stopped", () => {
  test("before it starts asks for nothing", async () => {
    const { api, reflector, run } = make();
    reflector.stop();
    let isResolved = false;
    void reflector.start().then(() => {
      isResolved = true;
    });
    await run(100_000);
    expect(api.requests).toEqual([]);
    expect(isResolved).toBe(false);
  });

  test.each([
    ["heeds", true],
    ["does not heed", false],
  ])(
    "during a list drops it, where the connection %s that, and opens no watch",
    async (_, heeds) => {
      const { api, clock, reflector, told, run } = make();
      api.heedsSignals = heeds;
      api.script = () => ({ answerAfterMs: 1000 });
      void reflector.start();
      await run(500);
      reflector.stop();
      expect(api.requests[0]?.signal.aborted).toBe(true);
      await run(100_000);
      expect(api.requests).toHaveLength(1);
      expect(told).toEqual([]);
      expect(clock.timers).toBe(0);
    },
  );

  test("at any moment tells and asks nothing after that", async () => {
    for (let moment = 0; moment < 40; moment += 1) {
      const { api, reflector, told, run } = make(manyNames);
      let atStop = { told: [""], requests: 0 };
      const stopIn = (turns: number) => {
        if (turns > 0) {
          queueMicrotask(() => stopIn(turns - 1));
          return;
        }
        api.put("unheard");
        reflector.stop();
        atStop = { told: [...told], requests: api.requests.length };
      };
      void reflector.start();
      stopIn(moment);
      await run(100_000);
      expect({ told, requests: api.requests.length }).toEqual(atStop);
    }
  });

  test("between two pages asks for no other", async () => {
    const { api, reflector, told, run } = make(manyNames);
    api.script = ({ continueToken }) => {
      if (continueToken !== undefined) reflector.stop();
      return undefined;
    };
    api.heedsSignals = false;
    void reflector.start();
    await run(100_000);
    expect(api.requests).toHaveLength(2);
    expect(told).toEqual([]);
  });

  test.each([
    ["heeds", true],
    ["does not heed", false],
  ])(
    "while it watches ends that, where the connection %s it, and hears no more",
    async (_, heeds) => {
      const { api, clock, reflector, told, run } = make();
      api.heedsSignals = heeds;
      await reflector.start();
      await run(1000);
      const { signal } = api.requests[1] ?? {};
      api.put("unheard");
      reflector.stop();
      expect(signal?.aborted).toBe(true);
      await run(0);
      expect(api.openWatches).toBe(0);
      api.put("unheard");
      await run(600_000);
      expect(told).toEqual(["replace 2"]);
      expect(api.requests).toHaveLength(2);
      expect(clock.timers).toBe(0);
    },
  );

  test("while a watch begins opens none", async () => {
    const { api, clock, reflector, told, run } = make();
    api.heedsSignals = false;
    api.script = inTurn(undefined, { answerAfterMs: 1000 });
    await reflector.start();
    await run(500);
    reflector.stop();
    api.put("unheard");
    await run(10_000);
    expect(told).toEqual(["replace 2"]);
    expect(api.requests).toHaveLength(2);
    api.endWatches("end");
    expect(clock.timers).toBe(0);
  });

  test("by what it tells hears no more", async () => {
    const { api, sink, reflector, told, run } = await watching();
    sink.put = () => {
      told.push("stop");
      reflector.stop();
    };
    api.put("c");
    api.put("d");
    await run(600_000);
    expect(told).toEqual(["stop"]);
    expect(api.openWatches).toBe(0);
  });

  test("while it waits asks for nothing more", async () => {
    const { api, clock, reflector, run } = make();
    api.script = () => ({ refusal: refused });
    void reflector.start();
    await run(500);
    reflector.stop();
    expect(clock.timers).toBe(0);
    await run(100_000);
    expect(api.requests).toHaveLength(1);
  });
});

describe("what is told of the watch", () => {
  test("is when the API server was last heard: a list, an event or a bookmark", async () => {
    const { reflector, api, clock, run } = make();
    expect(reflector.watch.heardAtWallMs).toBeUndefined();
    await reflector.start();
    const listedAtMs = clock.wallMs();
    expect(reflector.watch.heardAtWallMs).toBe(listedAtMs);
    for (const change of [() => api.put("c"), () => api.remove("c"), () => api.bookmark()]) {
      await run(1000);
      expect(reflector.watch.heardAtWallMs).toBeLessThan(clock.wallMs());
      change();
      await run(0);
      expect(reflector.watch.heardAtWallMs).toBe(clock.wallMs());
    }
    expect(clock.wallMs()).toBe(listedAtMs + 3000);
  });

  test("is how often it ended, or the list before it, by the reason", async () => {
    const { reflector, api, run } = make();
    api.script = inTurn({ refusal: denied });
    void reflector.start();
    await run(5000);
    expect(reflector.watch.restarts).toEqual({
      end: 0,
      expired: 0,
      denied: 1,
      silent: 0,
      error: 0,
    });
    for (const ending of ["end", expired, refused] as const) {
      api.endWatches(ending);
      await run(40_000);
    }
    // Bookmarks would be heard.
    api.bookmarkEveryMs = never;
    api.endWatches("end");
    await run(SILENCE_MS);
    api.endWatches("silence");
    await run(SILENCE_MS);
    const { end, ...others } = reflector.watch.restarts;
    expect(others).toEqual({ expired: 1, denied: 1, silent: 1, error: 1 });
    expect(end).toBeGreaterThanOrEqual(2);
  });
});
