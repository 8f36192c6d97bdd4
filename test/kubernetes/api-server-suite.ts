import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openSliceApi } from "../../src/kubernetes/client.ts";
import { ApiError, type SliceApi, type WatchEvent } from "../../src/kubernetes/slice-api.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { SliceObject } from "../support/fake-api-server.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryFolder } from "../support/service.ts";
import { thrownBy } from "../support/thrown-by.ts";

/** An API server, and what a test needs of it. */
export interface ApiServerUnderTest extends AsyncDisposable {
  put(slice: SliceObject): unknown;
  delete(namespace: string, name: string): unknown;
  /** Makes lists that have begun unable to go on. */
  expireLists(): unknown;
  /** A kubeconfig with a user of this token. */
  kubeconfig(user: { readonly token: string }): string;
  /** May read slices. */
  readonly readerToken: string;
  /** May do nothing. */
  readonly strangerToken: string;
}

let tests = 0;

/** What the client of the service and every API server do together. */
export function describeApiServer(name: string, start: () => Promise<ApiServerUnderTest>): void {
  describe(name, () => {
    let server: ApiServerUnderTest;
    beforeAll(async () => {
      server = await start();
    }, 120_000);
    afterAll(() => server?.[Symbol.asyncDispose]());

    const open = async (labelSelector: string, token = server.readerToken): Promise<SliceApi> => {
      using folder = temporaryFolder();
      const path = join(folder.path, "config");
      await Bun.write(path, server.kubeconfig({ token }));
      const { log } = recordedLog();
      return openSliceApi({ labelSelector, env: { KUBECONFIG: path }, clock: systemClock, log });
    };

    /** Slices that no other test has, and the client that sees them. */
    const setUp = async () => {
      tests += 1;
      const mine = `t${tests}`;
      const slice = (name: string, labels: Readonly<Record<string, string>> = {}): SliceObject => ({
        metadata: { name: `${mine}-${name}`, namespace: "dynamo", labels: { mine, ...labels } },
        addressType: "IPv4",
        endpoints: [{ addresses: ["10.1.2.3"], conditions: { ready: true } }],
        ports: [{ name: "http", port: 8000, protocol: "TCP" }],
      });
      const nameOf = (full: string) => full.slice(mine.length + 1);
      return {
        mine,
        slice,
        nameOf,
        api: await open(`mine=${mine}`),
        put: (...args: Parameters<typeof slice>) => server.put(slice(...args)),
        remove: (name: string) => server.delete("dynamo", `${mine}-${name}`),
      };
    };
    const never = new AbortController().signal;
    const firstPage = { limit: 500, continueToken: undefined };

    /** The next events, as `TYPE name`. */
    const take = async (
      events: AsyncIterable<WatchEvent>,
      count: number,
      nameOf: (full: string) => string,
    ): Promise<string[]> => {
      const seen: string[] = [];
      for await (const event of events) {
        if (event.type === "BOOKMARK") continue;
        seen.push(`${event.type} ${nameOf(event.slice.metadata.name)}`);
        if (seen.length === count) break;
      }
      return seen;
    };

    test("a list shows what is read of the slices, and no more", async () => {
      const { mine, slice, api } = await setUp();
      await server.put({
        ...slice("a"),
        metadata: { ...slice("a").metadata, annotations: { note: "x" } },
        endpoints: [
          {
            addresses: ["10.1.2.3"],
            conditions: { ready: false, serving: true },
            hostname: "pod-0",
            nodeName: "node-1",
            targetRef: { kind: "Pod", name: "relay-0", namespace: "dynamo" },
          },
          { addresses: ["10.1.2.4"] },
        ],
      });
      const { slices, continueToken } = await api.list(firstPage, never);
      expect(continueToken).toBeUndefined();
      expect(slices).toEqual([
        {
          metadata: {
            name: `${mine}-a`,
            namespace: "dynamo",
            resourceVersion: expect.stringMatching(/^\d+$/),
            labels: { mine },
            annotations: { note: "x" },
          },
          addressType: "IPv4",
          endpoints: [
            {
              addresses: ["10.1.2.3"],
              conditions: expect.objectContaining({ ready: false }),
              hostname: "pod-0",
              targetRef: expect.objectContaining({ kind: "Pod", name: "relay-0" }),
            },
            {
              addresses: ["10.1.2.4"],
              conditions: { ready: null },
              hostname: null,
              targetRef: null,
            },
          ],
          ports: [{ name: "http", port: 8000, appProtocol: null }],
        },
      ]);
    });

    test("a list of nothing has a version to watch from", async () => {
      const { api, put, nameOf } = await setUp();
      const { slices, resourceVersion } = await api.list(firstPage, never);
      expect(slices).toEqual([]);
      const events = await api.watch({ resourceVersion, timeoutSecs: 30 }, never);
      await put("a");
      expect(await take(events, 1, nameOf)).toEqual(["ADDED a"]);
    });

    test("all pages of a list show the slices as of its first page", async () => {
      const { api, put, nameOf } = await setUp();
      for (const name of ["a", "b", "c", "d", "e"]) await put(name);
      const pages = [await api.list({ limit: 2, continueToken: undefined }, never)];
      await put("f");
      for (let page = pages[0]; page?.continueToken !== undefined; page = pages.at(-1)) {
        pages.push(await api.list({ limit: 2, continueToken: page.continueToken }, never));
      }
      const names = pages.map(({ slices }) => slices.map(({ metadata }) => nameOf(metadata.name)));
      expect(names).toEqual([["a", "b"], ["c", "d"], ["e"]]);
      expect(new Set(pages.map(({ resourceVersion }) => resourceVersion)).size).toBe(1);
    });

    test("a label selector picks the slices that are listed", async () => {
      const { mine, put, nameOf } = await setUp();
      await put("both", { x: "1", y: "" });
      await put("one", { x: "1" });
      await put("two", { x: "2" });
      await put("none");
      const cases: readonly (readonly [selector: string, names: string])[] = [
        ["x", "both one two"],
        ["!x", "none"],
        ["x=1", "both one"],
        ["x==1", "both one"],
        ["x!=1", "none two"],
        ["x in (1,2)", "both one two"],
        ["x notin (1, 3)", "none two"],
        ["x,!y", "one two"],
        ["y=", "both"],
        ["x in (2,3),!y", "two"],
      ];
      for (const [selector, names] of cases) {
        const api = await open(`mine=${mine},${selector}`);
        const { slices } = await api.list(firstPage, never);
        const found = slices.map(({ metadata }) => nameOf(metadata.name));
        expect(found.join(" "), selector).toBe(names);
      }
    });

    test("a watch tells what has changed since its version, in order", async () => {
      const { api, put, remove, nameOf } = await setUp();
      await put("a");
      const { resourceVersion } = await api.list(firstPage, never);
      await put("b");
      const events = await api.watch({ resourceVersion, timeoutSecs: 30 }, never);
      await put("a", { x: "1" });
      await remove("b");
      expect(await take(events, 3, nameOf)).toEqual(["ADDED b", "MODIFIED a", "DELETED b"]);
    });

    test("a watch goes on from the version of any event", async () => {
      const { api, put, remove, nameOf } = await setUp();
      const { resourceVersion } = await api.list(firstPage, never);
      await put("a");
      await remove("a");
      await put("b");
      let version = resourceVersion;
      const seen: string[] = [];
      while (seen.length < 3) {
        const events = await api.watch({ resourceVersion: version, timeoutSecs: 30 }, never);
        for await (const event of events) {
          if (event.type === "BOOKMARK") continue;
          seen.push(`${event.type} ${nameOf(event.slice.metadata.name)}`);
          version = event.slice.metadata.resourceVersion;
          break;
        }
      }
      expect(seen).toEqual(["ADDED a", "DELETED a", "ADDED b"]);
    });

    test("a slice whose labels come to fit, and no longer do, is added and deleted", async () => {
      const { mine, put, nameOf } = await setUp();
      await put("a");
      const api = await open(`mine=${mine},x`);
      const { slices, resourceVersion } = await api.list(firstPage, never);
      expect(slices).toEqual([]);
      const events = await api.watch({ resourceVersion, timeoutSecs: 30 }, never);
      await put("a", { x: "1" });
      await put("a", { x: "2" });
      await put("a");
      expect(await take(events, 3, nameOf)).toEqual(["ADDED a", "MODIFIED a", "DELETED a"]);
    });

    test("a watch has bookmarks, and ends in order after its time-out", async () => {
      const { api, put, nameOf } = await setUp();
      const { resourceVersion } = await api.list(firstPage, never);
      const events = await api.watch({ resourceVersion, timeoutSecs: 4 }, never);
      await put("a");
      const seen: string[] = [];
      let bookmark = "";
      for await (const event of events) {
        if (event.type === "BOOKMARK") bookmark = event.resourceVersion;
        else seen.push(nameOf(event.slice.metadata.name));
      }
      expect(seen).toEqual(["a"]);
      expect(Number(bookmark)).toBeGreaterThan(Number(resourceVersion));
      const { resourceVersion: now } = await api.list(firstPage, never);
      expect(Number(bookmark)).toBeLessThanOrEqual(Number(now));
    }, 20_000);

    test("a list whose version is gone can't go on", async () => {
      const { api, put } = await setUp();
      for (const name of ["a", "b", "c"]) await put(name);
      const { continueToken } = await api.list({ limit: 1, continueToken: undefined }, never);
      await put("d");
      await server.expireLists();
      const error = await thrownBy(() => api.list({ limit: 1, continueToken }, never));
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({ fault: "expired" });
    });

    test("a version that is gone can't be watched", async () => {
      const { api } = await setUp();
      const error = await thrownBy(async () => {
        const events = await api.watch({ resourceVersion: "1", timeoutSecs: 30 }, never);
        for await (const _ of events);
      });
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({ fault: "expired" });
    });

    test("a token that is not known is refused, and the message names it", async () => {
      const api = await open("x", "unknown-token");
      const error = await thrownBy(() => api.list(firstPage, never));
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({ fault: "denied" });
      expect(error.message).toContain("does not accept the token (kubeconfig ");
      expect(error.message).toContain("401");
    });

    test("where RBAC lacks a verb, the message names it and the resource", async () => {
      const api = await open("x", server.strangerToken);
      for (const [verb, action] of [
        ["list", () => api.list(firstPage, never)],
        ["watch", () => api.watch({ resourceVersion: "1", timeoutSecs: 30 }, never)],
      ] as const) {
        const error = await thrownBy(action);
        expect(error).toBeInstanceOf(ApiError);
        expect(error).toMatchObject({ fault: "denied" });
        expect(error.message).toContain(`forbids ${verb} on endpointslices.discovery.k8s.io`);
        expect(error.message).toContain(`cannot ${verb} resource "endpointslices"`);
      }
    });

    test("a watch ends with the reason of its signal, and so does what has not begun", async () => {
      const { api } = await setUp();
      const { resourceVersion } = await api.list(firstPage, never);
      const controller = new AbortController();
      const events = await api.watch({ resourceVersion, timeoutSecs: 30 }, controller.signal);
      const reason = new Error("enough");
      const ended = thrownBy(async () => {
        for await (const _ of events);
      });
      setTimeout(() => controller.abort(reason), 50);
      expect(await ended).toBe(reason);
      expect(await thrownBy(() => api.list(firstPage, controller.signal))).toBe(reason);
      const again = () => api.watch({ resourceVersion, timeoutSecs: 30 }, controller.signal);
      expect(await thrownBy(again)).toBe(reason);
    });
  });
}
