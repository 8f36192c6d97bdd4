import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { limits } from "../../src/runtime/limits.ts";
import {
  type ApiFault,
  answerWith,
  endAtOnce,
  errorEvent,
  FakeApiServer,
  halfPage,
  hang,
  onLaterPages,
  refuse,
  reset,
  sendsLine,
  silent,
  throttle,
} from "../support/fake-api-server.ts";
import {
  apiErrorOf,
  clusterOf,
  listed,
  openWith,
  sliceNamed,
  watched,
} from "../support/slice-client.ts";
import { thrownBy } from "../support/thrown-by.ts";
import { until } from "../support/until.ts";

async function start() {
  const fake = await FakeApiServer.start();
  const version = fake.put(sliceNamed("a"));
  return { fake, version, api: await openWith({ cluster: clusterOf(fake) }) };
}

const event = (type: string, object: unknown) => JSON.stringify({ type, object });

describe("the API server is asked", () => {
  test("for nothing but lists and watches of EndpointSlices, as narrow as the selector", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    fake.put(sliceNamed("b"));
    const first = await api.list(
      { limit: 1, continueToken: undefined },
      new AbortController().signal,
    );
    await api.list({ limit: 1, continueToken: first.continueToken }, new AbortController().signal);
    fake.break(endAtOnce, "watch");
    await watched(api, version, { timeoutSecs: 270 });
    expect(
      fake.requests.map(({ method, path, query }) => [method, path, Object.fromEntries(query)]),
    ).toEqual([
      ["GET", PATH, { labelSelector: "x", limit: "1" }],
      ["GET", PATH, { labelSelector: "x", limit: "1", continue: first.continueToken ?? "" }],
      [
        "GET",
        PATH,
        {
          labelSelector: "x",
          watch: "1",
          allowWatchBookmarks: "true",
          resourceVersion: version,
          timeoutSeconds: "270",
        },
      ],
    ]);
    for (const { headers } of fake.requests) {
      expect(headers.get("user-agent")).toMatch(/^global-discovery-service\/\d/);
      expect(headers.get("accept")).toBe("application/json");
    }
  });
});

const PATH = "/apis/discovery.k8s.io/v1/endpointslices";

describe("what the API server refuses", () => {
  const cases: readonly (readonly [
    what: string,
    fault: ApiFault,
    kind: string,
    words: string[],
  ])[] = [
    ["401", refuse(401, "Unauthorized"), "denied", ["401", "no credentials at all", "kubeconfig"]],
    [
      "403",
      refuse(403, "Forbidden", { message: "no\u001b[31m way" }),
      "denied",
      ["403", "endpointslices.discovery.k8s.io", "ClusterRole", "Forbidden: no\\u{1b}[31m way"],
    ],
    [
      "404",
      answerWith(404, "404 page not found\n"),
      "error",
      ["404", "discovery.k8s.io/v1", "1.21"],
    ],
    ["410 as a status", refuse(410, "Expired"), "expired", ["410"]],
    ["429", throttle, "error", ["429", "fewer requests"]],
    ["500", refuse(500, "InternalError"), "error", ["500", "InternalError"]],
    ["502 of a proxy", answerWith(502, "<html>Bad\nGateway</html>"), "error", ["502", "Bad\\u{a}"]],
    [
      "a redirect",
      answerWith(302, "", { Location: "https://login.example/" }),
      "error",
      ["redirects to 'https://login.example/'"],
    ],
    ["a broken connection", reset, "error", ["ECONNRESET"]],
    [
      "a message without end",
      refuse(500, "InternalError", { message: "x".repeat(10_000) }),
      "error",
      ["500", "xxx…"],
    ],
  ];
  for (const [what, fault, kind, words] of cases) {
    test(`is told in a line: ${what}`, async () => {
      const { fake, version, api } = await start();
      using _ = fake;
      fake.break(fault, "list", "watch");
      for (const action of [() => listed(api), () => watched(api, version)]) {
        const error = await apiErrorOf(action);
        expect(String(error.fault), error.message).toBe(kind);
        expect(error.message).toStartWith(`the API server at ${fake.url} `);
        for (const word of words) expect(error.message).toContain(word);
      }
      fake.mend();
      expect(await listed(api)).toEqual(["a"]);
    });
  }
});

describe("a list that is not whole", () => {
  for (const how of ["end", "reset"] as const) {
    test(`is no list: its connection broke, by ${how}`, async () => {
      const { fake, api } = await start();
      using _ = fake;
      fake.break(halfPage(how), "list");
      const error = await apiErrorOf(() => listed(api));
      expect(error.fault).toBe("error");
      expect(error.message).toContain("ECONNRESET");
    });
  }

  test("is no list: it holds something else", async () => {
    const { fake, api } = await start();
    using _ = fake;
    const bodies = [
      "<html>",
      "",
      "[]",
      "{}",
      '{"metadata":{}}',
      '{"metadata":{"resourceVersion":"1"},"items":{}}',
      '{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}',
    ];
    for (const body of bodies) {
      fake.break(answerWith(200, body), "list");
      const error = await apiErrorOf(() => listed(api));
      expect(error.fault).toBe("error");
      expect(error.message).toContain("can't be read");
    }
    fake.break(answerWith(200, '{"metadata":{"resourceVersion":"1"},"items":null}'), "list");
    expect(await listed(api)).toEqual([]);
  });

  test("and hangs ends with the reason of its signal, on any page", async () => {
    const { fake, api } = await start();
    using _ = fake;
    fake.put(sliceNamed("b"));
    const stopped = async (continueToken: string | undefined) => {
      const controller = new AbortController();
      const reason = new Error("too late");
      const asked = fake.requests.length;
      const ended = thrownBy(() => api.list({ limit: 1, continueToken }, controller.signal));
      await until("the request", () => (fake.requests.length > asked ? true : undefined));
      controller.abort(reason);
      expect(await ended).toBe(reason);
    };
    fake.break(onLaterPages(hang), "list");
    const first = await api.list(
      { limit: 1, continueToken: undefined },
      new AbortController().signal,
    );
    await stopped(first.continueToken);
    fake.break(hang, "list");
    await stopped(undefined);
    fake.break(({ send }) => send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "list");
    await stopped(undefined);
  });
});

describe("a watch", () => {
  test("tells the same, however its bytes are split", async () => {
    const name = fc.string({
      unit: fc.constantFrom("é", "a", "\u{1f600}"),
      minLength: 1,
      maxLength: 4,
    });
    const { fake, version, api } = await start();
    using _ = fake;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.array(name, { maxLength: 3 }),
        async (bytes, names) => {
          fake.pieceBytes = bytes;
          fake.break(({ openWatch, sendLine, endWatch }) => {
            openWatch();
            for (const each of names) {
              sendLine(
                event("ADDED", {
                  ...sliceNamed(each),
                  metadata: { name: each, namespace: "n", resourceVersion: "2" },
                }),
              );
            }
            endWatch();
          }, "watch");
          const seen = await watched(api, version);
          expect(seen.map((each) => each.type === "ADDED" && each.slice.metadata.name)).toEqual(
            names,
          );
        },
      ),
      { numRuns: 30 },
    );
  });

  test("whose last line has no end is read to its end, where that is whole", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    const line = event("BOOKMARK", { metadata: { resourceVersion: "2000" } });
    const sendsPart =
      (text: string): ApiFault =>
      ({ openWatch, send, endWatch }) => {
        openWatch();
        send(`${text.length.toString(16)}\r\n${text}\r\n`);
        endWatch();
      };
    fake.break(sendsPart(line), "watch");
    expect(await watched(api, version)).toEqual([{ type: "BOOKMARK", resourceVersion: "2000" }]);
    fake.break(sendsPart(line.slice(0, -1)), "watch");
    expect((await apiErrorOf(() => watched(api, version))).message).toContain("can't be read");
  });

  test("with a line that is no event is an error", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    const lines = [
      "garbage",
      "{}",
      "null",
      event("PATCHED", sliceNamed("a")),
      event("ADDED", {}),
      event("ADDED", null),
      event("BOOKMARK", { metadata: {} }),
    ];
    for (const line of lines) {
      fake.break(sendsLine(line), "watch");
      const error = await apiErrorOf(() => watched(api, version));
      expect(error.fault).toBe("error");
      expect(error.message).toContain("can't be read");
    }
  });

  test("with a line that has no end is cut, so that memory stays bounded", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    fake.break(({ openWatch, send }) => {
      openWatch();
      const piece = `10000\r\n${"x".repeat(0x10000)}\r\n`;
      for (let sent = 0; sent <= limits.watchLineBytes; sent += 0x10000) send(piece);
    }, "watch");
    const error = await apiErrorOf(() => watched(api, version));
    expect(error.message).toContain(`a line is over ${limits.watchLineBytes} bytes`);
  });

  test("that an ERROR event ends says why, and that a version is gone", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    const cases = [
      [errorEvent(410, "Expired"), "expired"],
      [errorEvent(410, "Gone"), "expired"],
      [errorEvent(0, "Expired"), "expired"],
      [errorEvent(401, "Unauthorized"), "denied"],
      [errorEvent(403, "Forbidden"), "denied"],
      [errorEvent(500, "InternalError", "etcd is away"), "error"],
    ] as const;
    for (const [fault, kind] of cases) {
      fake.break(fault, "watch");
      expect((await apiErrorOf(() => watched(api, version))).fault).toBe(kind);
    }
    const last = await apiErrorOf(() => watched(api, version));
    expect(last.message).toContain("500 (InternalError: etcd is away)");
  });

  test("of a version that is gone is refused in either form", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    fake.put(sliceNamed("b"));
    fake.expire();
    for (const form of ["event", "status"] as const) {
      fake.expiredAs = form;
      expect((await apiErrorOf(() => watched(api, version))).fault).toBe("expired");
    }
  });

  test("that ends at once has no events, and one that is silent waits for its signal", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    fake.break(endAtOnce, "watch");
    expect(await watched(api, version)).toEqual([]);
    fake.break(silent, "watch");
    const controller = new AbortController();
    const reason = new Error("silent for too long");
    const ended = thrownBy(() => watched(api, version, { signal: controller.signal }));
    await until("the watch", () => (fake.of("watch").length === 2 ? true : undefined));
    controller.abort(reason);
    expect(await ended).toBe(reason);
  });

  test("that breaks off is an error, and the events before it are told", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    fake.put(sliceNamed("b"));
    const seen: string[] = [];
    const query = { resourceVersion: version, timeoutSecs: 300 };
    const error = await apiErrorOf(async () => {
      for await (const { type } of await api.watch(query, new AbortController().signal)) {
        seen.push(type);
        fake.dropAll();
      }
    });
    expect(error.fault).toBe("error");
    expect(error.message).toContain("broke its answer to watch off");
    expect(seen).toEqual(["ADDED"]);
  });

  test("tells nothing more once its signal is aborted", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    const line = event("BOOKMARK", { metadata: { resourceVersion: "2000" } });
    fake.break(sendsLine(`${line}\n${line}`), "watch");
    const controller = new AbortController();
    const reason = new Error("enough");
    const seen: string[] = [];
    const query = { resourceVersion: version, timeoutSecs: 300 };
    const error = await thrownBy(async () => {
      for await (const { type } of await api.watch(query, controller.signal)) {
        seen.push(type);
        controller.abort(reason);
      }
    });
    expect(error).toBe(reason);
    expect(seen).toEqual(["BOOKMARK"]);
  });

  test("drops its connection when its events are left, or its signal is aborted", async () => {
    const { fake, version, api } = await start();
    using _ = fake;
    fake.put(sliceNamed("b"));
    const query = { resourceVersion: version, timeoutSecs: 300 };
    for await (const { type } of await api.watch(query, new AbortController().signal)) {
      expect(type).toBe("ADDED");
      expect(fake.watching).toBe(1);
      break;
    }
    await until("the watch to end", () => (fake.watching === 0 ? true : undefined));
    const controller = new AbortController();
    await api.watch(query, controller.signal);
    expect(fake.watching).toBe(1);
    controller.abort(new Error("enough"));
    await until("the watch to end", () => (fake.watching === 0 ? true : undefined));
  });
});
