import { beforeAll, describe, expect, test } from "bun:test";
import { explained } from "../support/explained.ts";
import { exchange, RawConnection } from "../support/raw-http.ts";
import {
  brief,
  expectRefusal,
  find,
  freshKey,
  getList,
  getPool,
  getPools,
  post,
  postBytes,
  postText,
  register,
  registration,
} from "../support/relay.ts";
import { forEachOf } from "../support/service.ts";

const BODY_BYTES = 262_144;
const NOT_JSON = "the body";

/** Unicode white space that is not a control character. */
const WHITE_SPACE = [
  ..." \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a",
  ..."\u2028\u2029\u202f\u205f\u3000",
];

const CONTROL_CHARACTERS = Array.from({ length: 0xa0 }, (_, code) => code)
  .filter((code) => code < 0x20 || code >= 0x7f)
  .map((code) => String.fromCharCode(code));

/** Each place of a registration that holds a string: what names it, and a body with a text there. */
const textPlaces: Readonly<Record<string, (text: string) => ReturnType<typeof registration>>> = {
  "key.cluster_id": (text) => registration({ key: freshKey({ cluster_id: text }) }),
  "key.namespace": (text) => registration({ key: freshKey({ namespace: text }) }),
  "key.dgd_name": (text) => registration({ key: freshKey({ dgd_name: text }) }),
  "location.region": (text) => registration({ location: { region: text } }),
  "location.availability_zone": (text) =>
    registration({ location: { region: "r", availability_zone: text } }),
  "location.datacenter": (text) => registration({ location: { region: "r", datacenter: text } }),
  model: (text) => registration({ model: text }),
  capabilities: (text) => registration({ capabilities: ["a", text] }),
  frontends: (text) => registration({ frontends: ["http://a/", `http://b/${text}`] }),
  sku: (text) => registration({ capacity: [{ sku: text, workers: 1 }] }),
};

/** The body of a registration with `raw`, as it stands, for the number of workers. */
function withWorkers(raw: string, key = freshKey()): string {
  const body = JSON.stringify(registration({ key, capacity: [{ sku: "H100", workers: "@" }] }));
  return body.replace('"@"', raw);
}

/** A right body of exactly so many bytes. */
function bodyOf(bytes: number): string {
  const body = JSON.stringify(registration());
  return body + " ".repeat(bytes - body.length);
}

/** Sends a body in chunks, so that its length is not told beforehand. */
function inChunks(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 50_000) {
        controller.enqueue(bytes.subarray(at, at + 50_000));
      }
      controller.close();
    },
  });
}

/**
 * What HTTP alone can show of a service, however it is run. The one at `url` grants leases that
 * outlast the tests; it may hold pools of others.
 */
export function blackBoxSuite(url: string): void {
  routes(url);
  responses(url);
  protocol(url);
  bodies(url);
  strings(url);
  keys(url);
  fields(url);
  renewal(url);
  order(url);
}

/** Checks that a body is refused with 400 for a reason with `words` in it. */
async function refuses(url: string, body: unknown, ...words: string[]): Promise<void> {
  await expectRefusal(await post(url, body), 400, words, body);
}

async function refusesText(
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  ...words: string[]
): Promise<void> {
  const shown = typeof body === "string" ? body : Buffer.from(body).toString("latin1");
  await expectRefusal(await postText(url, body), 400, words, shown);
}

function routes(url: string): void {
  describe("routes", () => {
    test("POST /pools answers 200 with the heartbeat interval and the longer lease", async () => {
      const response = await post(url, registration());
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("application/json");
      const body = await response.text();
      const form = /^\{"heartbeat_interval_s":([1-9]\d*),"lease_duration_s":([1-9]\d*)\}$/;
      const [, heartbeat, lease] = form.exec(body) ?? [];
      expect(Number(heartbeat), body).toBeLessThan(Number(lease));
    });

    test("GET /pools answers 200 with the pools and whether the list is complete", async () => {
      const response = await fetch(`${url}/pools`);
      expect(response.status).toBe(200);
      const list: unknown = await response.json();
      expect(list).toEqual({ pools: expect.any(Array), complete: expect.any(Boolean) });
    });

    test("GET /pools lists each field in its order, and relay_identities last", async () => {
      const { key, location, ...rest } = registration();
      const mixed = {
        capacity: [{ workers: 8, sku: "H100" }],
        frontends: rest.frontends,
        model: rest.model,
        location: { datacenter: "d", region: "r", availability_zone: "z" },
        capabilities: rest.capabilities,
        key: { dgd_name: key.dgd_name, namespace: key.namespace, cluster_id: key.cluster_id },
      };
      await register(url, mixed);
      const { body } = await getList(url);
      const listed = {
        key: { cluster_id: key.cluster_id, namespace: key.namespace, dgd_name: key.dgd_name },
        location: { region: "r", availability_zone: "z", datacenter: "d" },
        model: rest.model,
        capabilities: rest.capabilities,
        frontends: rest.frontends,
        capacity: [{ sku: "H100", workers: 8 }],
        relay_identities: [],
      };
      expect(body).toContain(JSON.stringify(listed));
      expect(body).toMatch(/^\{"pools":\[.*\],"complete":(true|false)\}$/);
    });

    test("GET /routers answers 200 with the replicas of the router", async () => {
      const response = await fetch(`${url}/routers`);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toEqual({ routers: expect.any(Array) });
    });

    test("GET /healthz answers 200 with an empty body", async () => {
      const response = await fetch(`${url}/healthz`);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe("");
    });

    test("GET /explain answers 200 with why each pool is listed, never from a cache", async () => {
      const { key } = registration();
      await register(url, registration({ key }));
      await register(url, registration({ key, model: "another" }));
      const response = await fetch(`${url}/explain`);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      const { service, pools, ...rest } = await explained(url);
      expect(Object.keys(service)).toEqual([
        "version",
        "mode",
        "store",
        "started_at",
        "uptime_s",
        "complete",
        "reasons",
      ]);
      expect(service).toMatchObject({ mode: "registrations", store: "memory" });
      expect(service.started_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(Date.now() - Date.parse(service.started_at)).toBeGreaterThan(0);
      expect(service.complete).toBe(false);
      expect(service.reasons).toEqual([
        "less than one lease of 86400 s has passed since the start",
      ]);
      expect(rest).toEqual({ slices: null, table: null });
      const pool = find(pools, key);
      expect(pool).toEqual({
        key,
        listed: true,
        reasons: [expect.stringMatching(/^registered differently \d+ s ago, in model$/)],
        last_registered_s_ago: expect.any(Number),
        lease_left_s: expect.any(Number),
        written_in: null,
        relays_ready: null,
        frontends_ready: null,
        disagreements: { count: 1, fields: ["model"] },
      });
      const { last_registered_s_ago: ago, lease_left_s: left } = pool ?? {};
      const head = await fetch(`${url}/explain`, { method: "HEAD" });
      expect(head.status).toBe(200);
      expect(Number(head.headers.get("content-length"))).toBeGreaterThan(100);
      expect(await head.text()).toBe("");
      expect(ago).toBeWithin(0, 60);
      expect((ago ?? Number.NaN) + (left ?? Number.NaN)).toBeCloseTo(86_400, 2);
    });

    test("GET /explain is compressed as the lists are, with its length", async () => {
      for (let n = 0; n < 5; n += 1) await register(url, registration());
      for (const coding of ["zstd", "gzip", "identity"]) {
        const response = await exchange(
          url,
          `GET /explain HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${coding}\r\n\r\n`,
        );
        const body = Buffer.from(response.body);
        expect(Number(response.headers.get("content-length"))).toBe(body.length);
        const sent = response.headers.get("content-encoding") ?? "identity";
        expect(sent).toBe(coding);
        const plain =
          coding === "zstd"
            ? Bun.zstdDecompressSync(body)
            : coding === "gzip"
              ? Bun.gunzipSync(body)
              : body;
        expect(JSON.parse(Buffer.from(plain).toString()).pools.length).toBeGreaterThan(4);
      }
    });

    test("HEAD works where GET does", async () => {
      for (const path of ["/", "/pools", "/routers", "/healthz", "/nowhere"]) {
        const request = (method: string) =>
          `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
        const get = await exchange(url, request("GET"));
        using connection = await RawConnection.open(url);
        connection.send(request("HEAD"));
        const head = await connection.response({ bodiless: true });
        await connection.closed;
        expect(connection.rest, path).toBe("");
        expect(head.status, path).toBe(get.status);
        for (const name of ["content-type", "content-length", "etag", "cache-control", "vary"]) {
          expect(head.headers.get(name), `${path} ${name}`).toBe(get.headers.get(name));
        }
      }
    });

    test("another method on a known path is answered 405 with Allow", async () => {
      const refused = {
        "/pools": ["PUT", "DELETE", "PATCH", "OPTIONS"],
        "/routers": ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"],
        "/explain": ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"],
        "/healthz": ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"],
        "/": ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"],
      };
      for (const [path, methods] of Object.entries(refused)) {
        for (const method of methods) {
          const response = await fetch(url + path, { method });
          const allowed = path === "/pools" ? "GET, HEAD, POST" : "GET, HEAD";
          expect(response.headers.get("allow")?.split(", ").sort().join(", ")).toBe(allowed);
          await expectRefusal(response, 405, ["GET"], `${method} ${path}`);
        }
      }
    });

    test("TRACE, CONNECT and the methods of WebDAV are answered 405 as well", async () => {
      for (const method of ["TRACE", "CONNECT", "PROPFIND", "REPORT", "SEARCH", "QUERY"]) {
        const response = await exchange(url, `${method} /pools HTTP/1.1\r\nHost: x\r\n\r\n`);
        expect(response.status, method).toBe(405);
        expect(response.headers.get("allow"), method).toContain("GET");
      }
    });

    test("a method that the server's parser does not know ends the connection", async () => {
      const response = exchange(url, "BREW /pools HTTP/1.1\r\nHost: x\r\n\r\n");
      await expect(response).rejects.toThrow("closed");
    });

    test("another path is answered 404", async () => {
      const paths = [
        "/pool",
        "/pools/",
        "/pools/x",
        "/POOLS",
        "/pools.json",
        "//pools",
        "/pools;x",
        "/pools%2f",
        "/pools%00",
        "/%zz",
        "/%",
        "/__proto__",
        "/constructor",
        "/toString",
        "/healthz/",
        "/healthz%0a",
        "/p\u00f6\u00f6ls",
        `/${"a".repeat(3000)}`,
      ];
      for (const path of paths) {
        const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, "latin1");
        const response = await exchange(url, request);
        await expectRefusal(
          new Response(response.body, { headers: response.headers, status: response.status }),
          404,
          [],
          path,
        );
      }
      for (const method of ["POST", "DELETE", "OPTIONS"]) {
        await expectRefusal(await fetch(`${url}/nowhere`, { method }), 404, [], method);
      }
    });

    test("a query changes nothing", async () => {
      for (const path of ["/pools?", "/pools?x=1", "/pools??", "/routers?pools", "/healthz?%zz"]) {
        expect((await fetch(url + path)).status, path).toBe(200);
      }
      const posted = await fetch(`${url}/pools?x`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(registration()),
      });
      expect(posted.status).toBe(200);
    });

    test("GET is never refused as a method where it is the method that is allowed", async () => {
      for (const path of ["/./pools", "/%2e/pools", "/nowhere/../pools", "/pools#x", "/%70ools"]) {
        const { status } = await exchange(url, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
        expect([200, 404], `GET ${path} was answered ${status}`).toContain(status);
      }
    });

    test("a Host header, however odd, changes nothing", async () => {
      const hosts = ["a b", "", "x#", "x?y", "a/b", "[", "]", "%", ":80", "x:99999", "user@x", '"'];
      for (const host of [...hosts, "\u00e9", "http://x", "[::1]:80", "x".repeat(1000)]) {
        const ask = (line: string) =>
          exchange(url, Buffer.from(`${line} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, "latin1"));
        expect((await ask("GET /pools")).status, `GET, Host: ${host}`).toBe(200);
        expect((await ask("GET /nowhere")).status, `404, Host: ${host}`).toBe(404);
        expect((await ask("DELETE /pools")).status, `DELETE, Host: ${host}`).toBe(405);
      }
    });
  });
}

function responses(url: string): void {
  describe("responses", () => {
    /** A GET with exactly these header lines, and nothing undone in the response. */
    const get = (headers: string, path = "/pools") =>
      exchange(url, `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
    const etagOf = async (headers: string) => (await get(headers)).headers.get("etag") ?? "";

    beforeAll(async () => {
      // A list of more than 1 KiB, so that it is worth compressing.
      await register(url, registration({ model: "m".repeat(2000) }));
    });

    test("responses are JSON in UTF-8 with a Content-Length", async () => {
      await register(url, registration({ model: "größer 模型 🚀" }));
      for (const path of ["/pools", "/routers"]) {
        const { headers, body } = await get("", path);
        expect(headers.get("content-type")).toBe("application/json");
        expect(headers.get("content-length")).toBe(String(body.length));
        expect(() =>
          JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)),
        ).not.toThrow();
      }
      expect((await get("")).body.toString()).toContain('"größer 模型 🚀"');
    });

    test("both lists carry a strong ETag, no-cache and Vary", async () => {
      for (const path of ["/pools", "/routers"]) {
        for (const coding of ["", "Accept-Encoding: gzip\r\n", "Accept-Encoding: zstd\r\n"]) {
          const { headers } = await get(coding, path);
          expect(headers.get("etag"), path).toMatch(/^"[\x21\x23-\x7e]+"$/);
          expect(headers.get("cache-control"), path).toBe("no-cache");
          expect(headers.get("vary"), path).toBe("Accept-Encoding");
        }
      }
    });

    test("If-None-Match with the ETag of the body is answered 304 without a body", async () => {
      for (const path of ["/pools", "/routers"]) {
        const { headers } = await get("", path);
        using connection = await RawConnection.open(url);
        const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nIf-None-Match: ${headers.get("etag")}\r\n`;
        connection.send(`${request}Connection: close\r\n\r\n`);
        const response = await connection.response();
        await connection.closed;
        expect(connection.rest).toBe("");
        expect(response.status).toBe(304);
        for (const name of ["etag", "cache-control", "vary"]) {
          expect(response.headers.get(name), `${path} ${name}`).toBe(headers.get(name));
        }
      }
    });

    test("If-None-Match matches in a list, as a weak ETag, and as *", async () => {
      const etag = await etagOf("");
      const matching = [
        etag,
        `W/${etag}`,
        "*",
        ` ${etag} `,
        `"a", ${etag}`,
        `${etag},"a"`,
        `"a",W/${etag},"b"`,
        `"a,b", ${etag}`,
        `"", ${etag}`,
        `, ${etag},`,
        `"a"\r\nIf-None-Match: ${etag}`,
      ];
      for (const value of matching) {
        const { status } = await get(`If-None-Match: ${value}\r\n`);
        expect(status, value).toBe(304);
      }
    });

    test("If-None-Match with another ETag is answered 200", async () => {
      const etag = await etagOf("");
      const bare = etag.slice(1, -1);
      for (const value of [
        '"a"',
        '""',
        "",
        bare,
        bare.toUpperCase(),
        `"${bare}x"`,
        `"x${bare}"`,
        `"${bare}`,
        '"*"',
        `"${bare.slice(0, -1)}"`,
        `"x ${bare} y"`,
      ]) {
        const { status } = await get(`If-None-Match: ${value}\r\n`);
        expect(status, value).toBe(200);
      }
    });

    test("the ETag of any coding of the current body matches", async () => {
      const accepts = ["identity", "gzip", "zstd"].map(
        (coding) => `Accept-Encoding: ${coding}\r\n`,
      );
      for (const got of accepts) {
        const etag = await etagOf(got);
        for (const asked of accepts) {
          const { status, headers } = await get(`${asked}If-None-Match: ${etag}\r\n`);
          expect(status, `${got} then ${asked}`).toBe(304);
          expect(headers.get("etag")).toBe(await etagOf(asked));
        }
      }
    });

    test("HEAD with If-None-Match is answered 304", async () => {
      const request = `HEAD /pools HTTP/1.1\r\nHost: x\r\nIf-None-Match: ${await etagOf("")}\r\n\r\n`;
      expect((await exchange(url, request, { bodiless: true })).status).toBe(304);
    });

    test("the ETag of a body that is gone no longer matches", async () => {
      const etag = await etagOf("");
      await register(url, registration());
      expect((await get(`If-None-Match: ${etag}\r\n`)).status).toBe(200);
    });

    test("each coding is that of the same bytes, with an ETag of its own", async () => {
      const plain = await get("Accept-Encoding: identity\r\n");
      const gzip = await get("Accept-Encoding: gzip\r\n");
      const zstd = await get("Accept-Encoding: zstd\r\n");
      expect(plain.headers.get("content-encoding")).toBeNull();
      expect(gzip.headers.get("content-encoding")).toBe("gzip");
      expect(zstd.headers.get("content-encoding")).toBe("zstd");
      expect(Buffer.from(Bun.gunzipSync(new Uint8Array(gzip.body))).equals(plain.body)).toBe(true);
      expect(Buffer.from(Bun.zstdDecompressSync(zstd.body)).equals(plain.body)).toBe(true);
      expect(gzip.body.length).toBeLessThan(plain.body.length);
      expect(zstd.body.length).toBeLessThan(plain.body.length);
      for (const { headers, body } of [plain, gzip, zstd]) {
        expect(headers.get("content-length")).toBe(String(body.length));
      }
      const etags = [plain, gzip, zstd].map(({ headers }) => headers.get("etag"));
      expect(new Set(etags).size).toBe(3);
    });

    test("Accept-Encoding is answered with zstd or gzip, as its q-values say", async () => {
      const chosen: Record<string, string | null> = {
        gzip: "gzip",
        zstd: "zstd",
        GZIP: "gzip",
        "gzip, deflate, br": "gzip",
        "gzip;q=1.0, zstd;q=0.5": "gzip",
        "gzip;q=0.5, zstd;q=1.0": "zstd",
        "gzip; q=0.001": "gzip",
        "zstd;q=0, gzip": "gzip",
        "zstd;q=0, *": "gzip",
        "zstd;q=0.000, gzip;q=0.1, identity;q=0.05": "gzip",
        "br;q=1, zstd;q=0.2, *;q=0": "zstd",
        identity: null,
        "": null,
        br: null,
        deflate: null,
        "gzip;q=0": null,
        "gzip;q=0, zstd;q=0": null,
        "*;q=0, identity": null,
        "identity;q=1, gzip;q=0.5": null,
        "gzipped, zstdx": null,
      };
      for (const [value, coding] of Object.entries(chosen)) {
        const { status, headers } = await get(`Accept-Encoding: ${value}\r\n`);
        expect(status, value).toBe(200);
        expect(headers.get("content-encoding"), value).toBe(coding);
      }
      for (const value of ["gzip, zstd", "*", "gzip;q=0.5, *;q=0.5", "identity;q=0, *"]) {
        const { headers } = await get(`Accept-Encoding: ${value}\r\n`);
        expect(["gzip", "zstd"], value).toContain(headers.get("content-encoding") ?? "");
      }
      expect((await get("")).headers.get("content-encoding")).toBeNull();
    });

    test("an Accept-Encoding that makes no sense does no harm", async () => {
      const odd = [",", ";;;", "gzip;q=x", "gzip;q=", ";q=1", "gzip;q=2;q=1", "*;*", "\u00ff"];
      for (const value of [...odd, "gzip,".repeat(1000), "__proto__, constructor;q=1"]) {
        const head = `GET /pools HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${value}\r\n\r\n`;
        const { status } = await exchange(url, Buffer.from(head, "latin1"));
        expect(status, brief(value)).toBe(200);
      }
    });

    test("fetch reads every coding", async () => {
      const { body } = await getList(url);
      for (const coding of ["gzip", "zstd", "identity"]) {
        const response = await fetch(`${url}/pools`, { headers: { "Accept-Encoding": coding } });
        expect(await response.text()).toBe(body);
      }
    });
  });
}

function protocol(url: string): void {
  describe("protocol", () => {
    test("malformed HTTP is refused with a bare status and the connection closed", async () => {
      const head = "POST /pools HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
      const malformed = [
        "hello\r\n\r\n",
        "GET /pools\r\n\r\n",
        "GET /pools HTTP/1.1\r\n\r\n",
        "GET pools HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /pools HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
        "GET /pools HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        `GET /pools HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(1_000_000)}\r\n\r\n`,
        `${head}Content-Length: -1\r\n\r\n{}`,
        `${head}Content-Length: 99999999999999999999\r\n\r\n{}`,
        `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
        `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
        `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
      ];
      for (const data of malformed) {
        using connection = await RawConnection.open(url);
        connection.send(Buffer.from(data, "latin1"));
        const { status } = await connection.response();
        expect(status, brief(data)).toBeGreaterThanOrEqual(400);
        await connection.closed;
      }
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    });

    test("a client of HTTP/1.0 is answered and its connection closed", async () => {
      using connection = await RawConnection.open(url);
      connection.send("GET /routers HTTP/1.0\r\n\r\n");
      expect((await connection.response()).status).toBe(200);
      await connection.closed;
    });

    test("a request target in absolute form is answered", async () => {
      const { status } = await exchange(url, "GET http://x/pools HTTP/1.1\r\nHost: x\r\n\r\n");
      expect(status).toBe(200);
    });

    test("a client that waits for 100 Continue gets it, and then the answer", async () => {
      using connection = await RawConnection.open(url);
      const body = JSON.stringify(registration());
      connection.send(postBytes("", `Content-Length: ${body.length}\r\nExpect: 100-continue`));
      expect((await connection.response()).status).toBe(100);
      connection.send(body);
      expect((await connection.response()).status).toBe(200);
    });

    test("one connection serves many requests, refused ones among them", async () => {
      using connection = await RawConnection.open(url);
      const get = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
      const steps: [string, number][] = [
        [get, 200],
        [postBytes("{}"), 400],
        [postBytes(JSON.stringify(registration())), 200],
        ["PUT /pools HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405],
        ["GET /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 404],
        ["POST /pools HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 415],
        [get, 200],
      ];
      for (const [data, expected] of steps) {
        connection.send(data);
        expect((await connection.response()).status, brief(data)).toBe(expected);
      }
    });

    test("requests that are sent without waiting are answered in their order", async () => {
      const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
      using connection = await RawConnection.open(url);
      connection.send(get("/routers") + get("/nowhere") + get("/pools"));
      for (const expected of [200, 404, 200]) {
        expect((await connection.response()).status).toBe(expected);
      }
    });

    test("a registration is answered also where the next request follows it at once", async () => {
      using connection = await RawConnection.open(url);
      connection.send(
        `${postBytes(JSON.stringify(registration()))}GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n`,
      );
      expect((await connection.response()).status).toBe(200);
      expect((await connection.response()).status).toBe(404);
    });

    test("a body that comes byte by byte is read like any other", async () => {
      const body = JSON.stringify(registration({ model: "größer 模型 🚀" }));
      using connection = await RawConnection.open(url);
      for (const byte of Buffer.from(postBytes(body))) {
        connection.send(Uint8Array.of(byte));
        await Bun.sleep(0);
      }
      expect((await connection.response()).status).toBe(200);
    });

    test("a client that goes away in the middle of a request does no harm", async () => {
      const key = freshKey();
      const body = JSON.stringify(registration({ key }));
      for (let cut = 0; cut < 20; cut += 1) {
        using connection = await RawConnection.open(url);
        const bytes = postBytes(body);
        connection.send(bytes.slice(0, Math.floor((bytes.length * (cut + 1)) / 21)));
        await Bun.sleep(5);
      }
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      expect(await getPool(url, key)).toBeUndefined();
    });

    test("two hundred registrations at once are all kept", async () => {
      const bodies = Array.from({ length: 200 }, () => registration());
      await Promise.all(bodies.map((body) => register(url, body)));
      const { pools } = await getPools(url);
      for (const { key } of bodies) expect(find(pools, key), brief(key)).toBeDefined();
    });
  });
}

function bodies(url: string): void {
  describe("bodies", () => {
    const tooLarge = [String(BODY_BYTES)];

    test("a body of 256 KiB fits, with a Content-Length and without", async () => {
      expect((await postText(url, bodyOf(BODY_BYTES))).status).toBe(200);
      expect((await postText(url, inChunks(bodyOf(BODY_BYTES)))).status).toBe(200);
    });

    test("a body of one byte more is refused with 413 where it has a Content-Length", async () => {
      const body = bodyOf(BODY_BYTES + 1);
      await expectRefusal(await postText(url, body), 413, tooLarge);
    });

    test("a body of one byte more is refused with 413 where it has no Content-Length", async () => {
      const body = inChunks(bodyOf(BODY_BYTES + 1));
      await expectRefusal(await postText(url, body), 413, tooLarge);
    });

    test("a client that sends megabytes still hears why they are refused", async () => {
      for (const megabytes of [1, 10, 50]) {
        const body = "a".repeat(megabytes * 1_000_000);
        await expectRefusal(await postText(url, body), 413, tooLarge, megabytes);
        await expectRefusal(await postText(url, inChunks(body)), 413, tooLarge, megabytes);
      }
    });

    test("a body that is only announced as too large is refused before it comes", async () => {
      const { status } = await exchange(url, postBytes("", `Content-Length: ${BODY_BYTES + 1}`));
      expect(status).toBe(413);
    });

    test("a registration that is refused as too large changes nothing", async () => {
      const body = registration();
      await register(url, body);
      const before = await getList(url);
      const large = registration({ key: body.key, model: "m".repeat(BODY_BYTES) });
      await expectRefusal(await post(url, large), 413, tooLarge);
      expect(await getList(url)).toEqual(before);
    });

    test("the Content-Type is application/json, with parameters or without", async () => {
      for (const type of [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json ; charset="utf-8"',
        "Application/JSON",
        "application/json;",
        "application/json; a=b; c=d",
      ]) {
        const response = await postText(url, JSON.stringify(registration()), {
          "Content-Type": type,
        });
        expect(response.status, type).toBe(200);
      }
    });

    test("any other Content-Type is refused with 415, and so is none", async () => {
      for (const type of [
        "text/plain",
        "text/json",
        "application/jsonx",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",
        "application",
        "json",
        "*/*",
        "application/*",
        "text/plain; a=application/json",
        "application/json, text/plain",
        ";",
      ]) {
        const response = await postText(url, JSON.stringify(registration()), {
          "Content-Type": type,
        });
        await expectRefusal(response, 415, ["Content-Type"], type);
      }
      const body = JSON.stringify(registration());
      for (const header of ["", "Content-Type:\r\n"]) {
        const head = `POST /pools HTTP/1.1\r\nHost: x\r\n${header}Content-Length: ${body.length}\r\n\r\n`;
        expect((await exchange(url, head + body)).status, header).toBe(415);
      }
    });

    test("a compressed body is refused with 415", async () => {
      const body = Bun.gzipSync(new TextEncoder().encode(JSON.stringify(registration())));
      for (const coding of ["gzip", "br", "identity, gzip"]) {
        const response = await postText(url, body, { "Content-Encoding": coding });
        await expectRefusal(response, 415, ["Content-Encoding"], coding);
      }
      const plain = JSON.stringify(registration());
      expect((await postText(url, plain, { "Content-Encoding": "identity" })).status).toBe(200);
    });

    test("a body that is not JSON is refused", async () => {
      const good = JSON.stringify(registration());
      for (const body of [
        "",
        " ",
        "{",
        "}",
        "hello",
        "undefined",
        "NaN",
        good.slice(0, -1),
        `${good}x`,
        `${good}${good}`,
        `${good.slice(0, -1)},}`,
        `[${good}`,
        good.replaceAll('"', "'"),
        good.replace('"key"', "key"),
        `/* a */${good}`,
        `${good}//`,
        `\u00a0${good}`,
        `${good}\0`,
        `\f${good}`,
        good.replace('"aggregated"', '"aggre\ngated"'),
        good.replace('"aggregated"', '"\\x41"'),
        good.replace('"aggregated"', '"\\u12"'),
        good.replace('"workers":8', '"workers":08'),
        good.replace('"workers":8', '"workers":+8'),
        good.replace('"workers":8', '"workers":0x8'),
        good.replace('"workers":8', '"workers":8.'),
        good.replace('"workers":8', '"workers":Infinity'),
      ]) {
        await refusesText(url, body, NOT_JSON);
      }
    });

    test("a body that is JSON but not an object is refused", async () => {
      for (const body of [
        "null",
        "true",
        "5",
        '"x"',
        "[]",
        `[${JSON.stringify(registration())}]`,
      ]) {
        await refusesText(url, body, "object");
      }
    });

    test("white space and escapes of JSON are read as such", async () => {
      const key = freshKey();
      const body = JSON.stringify(registration({ key, model: "A/é🚀" }), null, "\t")
        .replace('"model"', '"\\u006dodel"')
        .replace("A/é🚀", "\\u0041\\/\\u00E9\\ud83d\\uDE80");
      expect((await postText(url, `\r\n\t ${body} \n`)).status).toBe(200);
      expect((await getPool(url, key))?.model).toBe("A/é🚀");
    });

    test("a byte order mark before the body does no harm", async () => {
      expect((await postText(url, `\ufeff${JSON.stringify(registration())}`)).status).toBe(200);
    });

    test("a body that is not valid UTF-8 is refused, wherever that is", async () => {
      const invalid = [
        [0xff],
        [0x80],
        [0xc0, 0x80],
        [0xc3],
        [0xe2, 0x82],
        [0xed, 0xa0, 0x80],
        [0xed, 0xa0, 0xbd, 0xed, 0xba, 0x80],
        [0xf4, 0x90, 0x80, 0x80],
        [0xf8, 0x88, 0x80, 0x80, 0x80],
      ];
      for (const bytes of invalid) {
        for (const place of ['"model":"', '"unknown":"', '"cluster_id":"']) {
          const body = JSON.stringify({ ...registration(), unknown: "" });
          const [before = "", after = ""] = body.split(place, 2);
          const sent = Buffer.concat([
            Buffer.from(before + place),
            Buffer.from(bytes),
            Buffer.from(after),
          ]);
          await refusesText(url, new Uint8Array(sent), "UTF-8");
        }
      }
      const utf16 = Buffer.from(JSON.stringify(registration()), "utf16le");
      await refusesText(url, new Uint8Array(utf16));
    });

    test("nesting, however deep, is refused or read, and the service lives on", async () => {
      const deep = (open: string, close: string, times: number) =>
        open.repeat(times) + close.repeat(times);
      await refusesText(url, "[".repeat(250_000), NOT_JSON);
      await refusesText(url, '{"a":'.repeat(50_000), NOT_JSON);
      await refusesText(url, deep("[", "]", 130_000), NOT_JSON);
      const inList = JSON.stringify(registration({ capabilities: "@" }));
      await refusesText(url, inList.replace('"@"', deep("[", "]", 100_000)));
      await refusesText(
        url,
        inList.replace('"@"', `[${deep('{"a":', "}", 10).slice(0, -10)}1${"}".repeat(10)}]`),
        "capabilities",
      );
      const unknown = JSON.stringify({ ...registration(), unknown: "@" });
      for (const times of [10, 1000, 100_000]) {
        const response = await postText(url, unknown.replace('"@"', deep("[", "]", times)));
        if (times <= 1000) expect(response.status, String(times)).toBe(200);
        else if (response.status !== 200) await expectRefusal(response, 400, [NOT_JSON], times);
      }
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    });

    test("unknown fields are ignored at every level", async () => {
      const good = registration();
      const names = ["unknown", "__proto__", "constructor", "toString", "", "relay_identities"];
      const extra = names
        .map((name) => `${JSON.stringify(name)}:{"capabilities":["x"],"model":"x","sku":"x"}`)
        .join(",");
      const body = JSON.stringify({
        key: { ...good.key, "@": 0 },
        location: { ...good.location, "@": 0 },
        model: good.model,
        capabilities: good.capabilities,
        frontends: good.frontends,
        capacity: [{ sku: "H100", workers: 8, "@": 0 }],
        "@": 0,
      }).replaceAll('"@":0', extra);
      expect((await postText(url, body)).status).toBe(200);
      const listed = await getPool(url, good.key);
      expect(JSON.stringify(listed)).toBe(JSON.stringify({ ...good, relay_identities: [] }));
    });

    test("a field of the prototype does not stand in for one that is missing", async () => {
      const { model, ...rest } = registration();
      const body = JSON.stringify(rest).replace(/\}$/, `,"__proto__":{"model":"${model}"}}`);
      await refusesText(url, body, "model");
      const without = JSON.stringify(registration({ location: "@" }));
      await refusesText(url, without.replace('"@"', '{"__proto__":{"region":"r"}}'), "region");
    });

    test("of a repeated field the last counts", async () => {
      const key = freshKey();
      const body = JSON.stringify(registration({ key }))
        .replace('"model":', '"model":5,"model":"no","model":')
        .replace('"cluster_id":', '"cluster_id":"no","cluster_id":')
        .replace('"region":', '"region":null,"region":')
        .replace('"workers":', '"workers":-1,"workers":')
        .replace('"capabilities":', '"capabilities":"no","capabilities":');
      expect((await postText(url, body)).status).toBe(200);
      const listed = await getPool(url, key);
      expect(JSON.stringify(listed)).toBe(
        JSON.stringify({ ...registration({ key }), relay_identities: [] }),
      );
      const last = JSON.stringify(registration()).replace(/\}$/, ',"model":5}');
      await refusesText(url, last, "model");
    });
  });
}

function strings(url: string): void {
  describe("strings", () => {
    test("no string holds a control character, U+007F to U+009F included", async () => {
      const cases = Object.entries(textPlaces).flatMap(([name, body]) =>
        CONTROL_CHARACTERS.map((character) => ({ name, body: body(`a${character}b`) })),
      );
      await forEachOf(cases, ({ name, body }) => refuses(url, body, name));
    });

    test("a control character is one however it is written", async () => {
      await forEachOf(CONTROL_CHARACTERS, async (character) => {
        const code = character.charCodeAt(0).toString(16).padStart(4, "0");
        const body = JSON.stringify(registration({ model: "@" }));
        await refusesText(url, body.replace("@", `a\\u${code}b`), "model");
      });
      await refusesText(url, JSON.stringify(registration({ model: "@" })).replace("@", "\x01"));
    });

    test("every string is well-formed Unicode, lone surrogates by escape included", async () => {
      const lone = ["\ud800", "\udfff", "\ud83d\ud83d", "\ude80\ud83d", "a\ud83d", "\ude80z"];
      const cases = Object.entries(textPlaces).flatMap(([name, body]) =>
        lone.map((text) => ({ name, body: body(text) })),
      );
      await forEachOf(cases, async ({ name, body }) => {
        expect(JSON.stringify(body)).toMatch(/\\ud/);
        await refuses(url, body, name);
      });
    });

    test("a string is a string", async () => {
      for (const value of [5, true, {}, [], ["a"]]) {
        for (const name of ["cluster_id", "namespace", "dgd_name"]) {
          await refuses(url, registration({ key: { ...freshKey(), [name]: value } }), name);
        }
        for (const name of ["region", "availability_zone", "datacenter"]) {
          await refuses(url, registration({ location: { region: "r", [name]: value } }), name);
        }
        await refuses(url, registration({ model: value }), "model");
        await refuses(url, registration({ capabilities: [value] }), "capabilities");
        await refuses(url, registration({ frontends: [value] }), "frontends");
        await refuses(url, registration({ capacity: [{ sku: value, workers: 1 }] }), "sku");
      }
    });

    test("any other character is legal and comes back as it was sent", async () => {
      const texts = [
        "a/b",
        "%2F%25%",
        '"\\',
        "<script>&amp;",
        "\u00ad\u200b\u200e\u202e\u2028\u2029.",
        "\ufeffa\ufffe\uffff",
        "e\u0301 \u00e9",
        "🚀\u{10ffff}",
        "null",
        "__proto__",
      ];
      for (const text of texts) {
        const body = registration({
          location: { region: text, availability_zone: text, datacenter: text },
          model: text,
          capabilities: [text],
          capacity: [{ sku: text, workers: 1 }],
        });
        await register(url, body);
        expect(await getPool(url, body.key)).toEqual(
          expect.objectContaining({ ...body, relay_identities: [] }),
        );
      }
    });

    test("an error is one short line of plain text whatever it is about", async () => {
      const long = "x".repeat(200_000);
      const faulty = `\x01${"y".repeat(1000)}`;
      const odd = "\u202egpj.exe\u2028\u2029\u200b\ufeff<html>\ud83d\x1b[31m\r\nHTTP/1.1 200 OK";
      const cases = [
        { ...registration(), model: [long] },
        { ...registration(), model: { [long]: 1 } },
        registration({ key: freshKey({ cluster_id: long }) }),
        registration({ key: freshKey({ cluster_id: `\x01${long}` }) }),
        registration({ frontends: [long] }),
        registration({ capacity: Array.from({ length: 5000 }, () => ({ sku: "", workers: -1 })) }),
        registration({ capabilities: Array.from({ length: 50_000 }, () => "") }),
        registration({ frontends: Array.from({ length: 20_000 }, () => "ftp://a") }),
        { key: 1, location: 1, model: 1, capabilities: 1, frontends: 1, capacity: 1 },
        ...Object.values(textPlaces).map((body) => body(odd)),
        // All that can be wrong at once, which is more than a line has room for.
        {
          key: { cluster_id: faulty, namespace: faulty, dgd_name: faulty },
          location: { region: faulty, availability_zone: faulty, datacenter: faulty },
          model: faulty,
          capabilities: [faulty],
          frontends: [faulty],
          capacity: [{ sku: faulty, workers: -1 }],
        },
      ];
      for (const body of cases) await refuses(url, body);
      // Pairs that a cut could halve.
      for (let at = 0; at < 8; at += 1) {
        await refuses(url, registration({ frontends: ["x".repeat(at) + "🚀".repeat(400)] }));
      }
    });

    test("an error names every field that is at fault", async () => {
      const body = {
        key: { cluster_id: "", namespace: "n" },
        location: { availability_zone: 5 },
        capabilities: [""],
        frontends: ["x"],
        capacity: [{ sku: "H100", workers: -1 }],
      };
      const names = ["cluster_id", "dgd_name", "region", "availability_zone", "model"];
      const response = await post(url, body);
      const reason = await response.clone().text();
      // As many as there is room for in one line.
      await expectRefusal(response, 400, reason.length < 450 ? names : names.slice(0, 2));
    });
  });
}

function keys(url: string): void {
  describe("keys", () => {
    const parts = ["cluster_id", "namespace", "dgd_name"] as const;

    test("each part of a key is required", async () => {
      await refuses(url, registration({ key: undefined }), "key");
      for (const key of [null, [], ["a", "b", "c"], "a/b/c", 5, true, {}]) {
        await refuses(url, registration({ key }), "key");
      }
      for (const part of parts) {
        for (const value of [undefined, null, ""]) {
          await refuses(
            url,
            registration({ key: { ...freshKey(), [part]: value } }),
            `key.${part}`,
          );
        }
      }
    });

    test("each part of a key takes 253 bytes of UTF-8 and not 254", async () => {
      const unique = freshKey().cluster_id;
      const padded = (filler: string, bytes: number) => {
        const text =
          unique + filler.repeat(Math.floor((bytes - unique.length) / Buffer.byteLength(filler)));
        return text + "x".repeat(bytes - Buffer.byteLength(text));
      };
      for (const part of parts) {
        for (const filler of ["a", "é", "模", "🚀"]) {
          await register(
            url,
            registration({ key: { ...freshKey(), [part]: padded(filler, 253) } }),
          );
          await refuses(
            url,
            registration({ key: { ...freshKey(), [part]: padded(filler, 254) } }),
            part,
          );
        }
      }
    });

    test("a part of a key has no white space at either end, U+00A0 and U+3000 included", async () => {
      const cases = parts.flatMap((part) =>
        WHITE_SPACE.flatMap((space) =>
          [`${space}a`, `a${space}`, space].map((text) => ({ part, text })),
        ),
      );
      await forEachOf(cases, ({ part, text }) =>
        refuses(url, registration({ key: { ...freshKey(), [part]: text } }), part),
      );
    });

    test("white space inside a part of a key is legal", async () => {
      await forEachOf(WHITE_SPACE, async (space) => {
        const key = freshKey({ dgd_name: `a${space}b` });
        await register(url, registration({ key }));
        expect(await getPool(url, key)).toBeDefined();
      });
    });

    test("any other character is legal in a key, / and % and __proto__ included", async () => {
      const texts = [
        "/",
        "//",
        "%",
        "%2F",
        "%25",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "..",
        "'\"\\",
        "a=b&c?d#e",
        "🚀",
        "\u200b",
        "-",
        "0",
      ];
      const unique = freshKey().cluster_id;
      const all = [
        ...texts.map((text) => freshKey({ namespace: text, dgd_name: text })),
        // The same three texts for whoever joins them without care.
        freshKey({ cluster_id: `${unique}/a`, namespace: "b", dgd_name: "c" }),
        freshKey({ cluster_id: unique, namespace: "a/b", dgd_name: "c" }),
        freshKey({ cluster_id: unique, namespace: "a", dgd_name: "b/c" }),
        freshKey({ cluster_id: unique, namespace: "a%2Fb", dgd_name: "c" }),
        freshKey({ cluster_id: unique, namespace: "a%252Fb", dgd_name: "c" }),
        // Each is one for whoever folds case or composes characters.
        freshKey({ cluster_id: unique, dgd_name: "\u00e9" }),
        freshKey({ cluster_id: unique, dgd_name: "e\u0301" }),
        freshKey({ cluster_id: unique, dgd_name: "E\u0301" }),
      ];
      for (const key of all) await register(url, registration({ key, model: JSON.stringify(key) }));
      const { pools } = await getPools(url);
      for (const key of all) expect(find(pools, key)?.model).toBe(JSON.stringify(key));
    });

    test("a cluster may be called __proto__", async () => {
      const key = {
        cluster_id: "__proto__",
        namespace: "__proto__",
        dgd_name: freshKey().cluster_id,
      };
      await register(url, registration({ key }));
      expect(await getPool(url, key)).toBeDefined();
    });

    test("the three parts together, % and / encoded, take 1,024 bytes and not one more", async () => {
      const unique = freshKey().cluster_id;
      for (const character of ["%", "/"]) {
        const cluster = unique + character.repeat(253 - unique.length);
        const encoded = unique.length + 3 * (253 - unique.length);
        const left = 1024 - encoded - "//".length;
        const namespace = "n".repeat(Math.min(253, left - 1));
        const fits = {
          cluster_id: cluster,
          namespace,
          dgd_name: "d".repeat(left - namespace.length),
        };
        await register(url, registration({ key: fits }));
        expect(await getPool(url, fits)).toBeDefined();
        const over = { ...fits, dgd_name: `${fits.dgd_name}d` };
        await refuses(url, registration({ key: over }), "key", "1024");
      }
      const plain = "p".repeat(253 - unique.length);
      const longest = {
        cluster_id: unique + plain,
        namespace: unique + plain,
        dgd_name: unique + plain,
      };
      await register(url, registration({ key: longest }));
    });
  });
}

function fields(url: string): void {
  describe("fields", () => {
    const listed = async (body: ReturnType<typeof registration>) => {
      await register(url, body);
      return await getPool(url, body.key);
    };

    test("location is required, and its region a string that is not blank", async () => {
      for (const location of [undefined, null, [], ["r"], "r", 5, {}, { region: null }]) {
        await refuses(url, registration({ location }), "location");
      }
      for (const region of ["", ...WHITE_SPACE, " \u3000\u00a0 "]) {
        await refuses(url, registration({ location: { region } }), "location.region");
      }
      const kept = await listed(registration({ location: { region: " a " } }));
      expect(kept?.location.region).toBe(" a ");
    });

    test("availability_zone and datacenter are strings or null, null where left out", async () => {
      const places = [
        { region: "r" },
        { region: "r", availability_zone: null, datacenter: null },
        { region: "r", availability_zone: "", datacenter: " " },
        { region: "r", datacenter: "d" },
      ];
      for (const location of places) {
        const pool = await listed(registration({ location }));
        expect(JSON.stringify(pool?.location)).toBe(
          JSON.stringify({
            region: "r",
            availability_zone: location.availability_zone ?? null,
            datacenter: location.datacenter ?? null,
          }),
        );
      }
    });

    test("model is required and not blank", async () => {
      for (const model of [undefined, null, "", ...WHITE_SPACE, " \u2003\u3000"]) {
        await refuses(url, registration({ model }), "model");
      }
    });

    test("the lists are empty where left out or null", async () => {
      for (const value of [undefined, null, []]) {
        const lists = { capabilities: value, frontends: value, capacity: value };
        expect(await listed(registration(lists))).toMatchObject({
          capabilities: [],
          frontends: [],
          capacity: [],
        });
      }
    });

    test("a list is a list", async () => {
      for (const name of ["capabilities", "frontends", "capacity"]) {
        for (const value of ["aggregated", "", 5, 0, true, false, {}, { 0: "a", length: 1 }]) {
          await refuses(url, registration({ [name]: value }), name);
        }
        await refuses(url, registration({ [name]: [null] }), name);
        await refuses(url, registration({ [name]: [[]] }), name);
      }
    });

    test("no capability is blank", async () => {
      for (const blank of ["", " ", "\u3000", "\u00a0\u2028"]) {
        await refuses(url, registration({ capabilities: ["a", blank] }), "capabilities[1]");
      }
    });

    test("a member may be in a list more than once", async () => {
      const lists = {
        capabilities: ["a", "b", "a"],
        frontends: ["http://a/", "http://a/"],
        capacity: [
          { sku: "H100", workers: 8 },
          { sku: "H100", workers: 8 },
          { sku: "H100", workers: 4 },
        ],
      };
      expect(await listed(registration(lists))).toMatchObject(lists);
    });

    test("a frontend is kept in the serialised form of the URL standard", async () => {
      const forms: Record<string, string> = {
        "http://10.43.1.2:8000/": "http://10.43.1.2:8000/",
        "http://10.43.1.2:8000": "http://10.43.1.2:8000/",
        "HTTP://Frontend.Example:8000": "http://frontend.example:8000/",
        "http://a:80/": "http://a/",
        "https://a:443": "https://a/",
        "https://a:80/": "https://a:80/",
        "http://a:443/": "http://a:443/",
        "http://a:/": "http://a/",
        "http://a:08000/": "http://a:8000/",
        "http://a:0/": "http://a:0/",
        "http://[2001:DB8:0:0::1]:8000/": "http://[2001:db8::1]:8000/",
        "http://[::ffff:10.0.0.1]/": "http://[::ffff:a00:1]/",
        "http://bücher.example/": "http://xn--bcher-kva.example/",
        "http://日本語.example:8000": "http://xn--wgv71a119e.example:8000/",
        "http://%61.example/": "http://a.example/",
        "http://a./": "http://a./",
        "http://0x7f.1/": "http://127.0.0.1/",
        "http:a": "http://a/",
        "http:\\\\a\\": "http://a/",
        "http:///a": "http://a/",
        "http://a/.": "http://a/",
        "http://a/%2e%2E/": "http://a/",
        "  http://a/  ": "http://a/",
        "http://@a/": "http://a/",
      };
      for (const [given, kept] of Object.entries(forms)) {
        expect((await listed(registration({ frontends: [given] })))?.frontends, given).toEqual([
          kept,
        ]);
      }
    });

    test("a frontend that is more than an http or https origin is refused", async () => {
      for (const frontend of [
        "",
        " ",
        "a",
        "a:8000",
        "10.43.1.2:8000",
        "//a/",
        "/",
        "http:",
        "http://",
        "http:///",
        "http://:8000/",
        "http://a/x",
        "http://a//",
        "http://a/x/..a",
        "http://a/?",
        "http://a?",
        "http://a/?x=1",
        "http://a/#",
        "http://a/#x",
        "http://user@a/",
        "http://user:secret@a/",
        "http://:secret@a/",
        "http://a:65536/",
        "http://a:x/",
        "http://a:-1/",
        "http://a b/",
        "http://a,http://b",
        "http://[::1/",
        "http://::1/",
        "http://[::1%25eth0]/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://a%00b/",
        "http://%/",
        "http://xn--/",
        "ftp://a/",
        "ws://a/",
        "grpc://a:8000/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,x",
        "blob:http://a/",
        "urn:a",
        "null",
      ]) {
        const body = registration({ frontends: ["http://b/", frontend] });
        await refuses(url, body, "frontends[1]");
      }
    });

    test("an entry of capacity is an object with a sku that is not blank", async () => {
      for (const entry of [null, "H100", 8, [], ["H100", 8], {}, { sku: "H100" }, { workers: 8 }]) {
        await refuses(
          url,
          registration({ capacity: [{ sku: "a", workers: 1 }, entry] }),
          "capacity[1]",
        );
      }
      for (const sku of [null, "", " ", "\u3000"]) {
        await refuses(url, registration({ capacity: [{ sku, workers: 8 }] }), "capacity[0].sku");
      }
    });

    test("workers is a whole number from 0 to 4294967295, however it is written", async () => {
      const numbers: Record<string, string> = {
        "0": "0",
        "8": "8",
        "8.0": "8",
        "8.000": "8",
        "-0": "0",
        "-0.0": "0",
        "0e5": "0",
        "1e0": "1",
        "1E+2": "100",
        "10e-1": "1",
        "4294967295": "4294967295",
        "4294967295.0": "4294967295",
        "4.294967295e9": "4294967295",
      };
      for (const [raw, kept] of Object.entries(numbers)) {
        const key = freshKey();
        const response = await postText(url, withWorkers(raw, key));
        expect(response.status, raw).toBe(200);
        const { body } = await getList(url);
        const [, rest = ""] = body.split(JSON.stringify(key.cluster_id));
        expect(rest.split('"relay_identities"', 1)[0], raw).toContain(`"workers":${kept}}`);
      }
    });

    test("workers is nothing else", async () => {
      for (const raw of [
        "4294967296",
        "4294967295.5",
        "1e10",
        "1e400",
        "-1e400",
        "-1",
        "-0.5",
        "1.5",
        "0.1",
        '"8"',
        '""',
        "null",
        "true",
        "false",
        "[]",
        "[8]",
        "{}",
      ]) {
        await refusesText(url, withWorkers(raw), "capacity[0].workers");
      }
    });

    test("relay_identities is always an empty list", async () => {
      const pool = await listed({ ...registration(), ...{ relay_identities: ["ip:10.0.0.1"] } });
      expect(pool?.relay_identities).toEqual([]);
    });

    test("a registration as large as a body may be is listed whole", async () => {
      const body = registration({ capabilities: [], frontends: [], capacity: [] });
      const room = BODY_BYTES - JSON.stringify(body).length;
      const capabilities = Array.from({ length: Math.floor(room / 4) }, () => "a");
      const full = { ...body, capabilities };
      expect((await listed(full))?.capabilities).toEqual(capabilities);
      // Gone again, for the sake of whoever reads the list next.
      await register(url, body);
    });
  });
}

function renewal(url: string): void {
  describe("renewal", () => {
    test("a heartbeat that renews an unchanged registration changes nothing", async () => {
      const body = registration();
      await register(url, body);
      const before = await getList(url);
      for (let beat = 0; beat < 5; beat += 1) await register(url, body);
      expect(await getList(url)).toEqual(before);
    });

    test("a registration replaces the one with the same key, and the last one wins", async () => {
      const { key } = registration();
      for (const model of ["a", "b", "a", "c"]) {
        await register(url, registration({ key, model }));
        const { pools } = await getPools(url);
        const those = pools.filter((pool) => Bun.deepEquals(pool.key, key));
        expect(those.map((pool) => pool.model)).toEqual([model]);
      }
    });

    test("the ETag changes when and only when the body does", async () => {
      const { key } = registration();
      const seen = new Map<string, string>();
      const changes = [
        {},
        { model: "b" },
        {},
        { capabilities: ["a"] },
        { capabilities: ["a", "a"] },
        { frontends: [] },
        { capacity: [{ sku: "H100", workers: 9 }] },
        { capacity: [{ sku: "H200", workers: 8 }] },
        { location: { region: "s" } },
        { location: { region: "s", datacenter: "" } },
        { model: "b" },
      ];
      for (const change of changes) {
        await register(url, registration({ key, ...change }));
        const { body, etag } = await getList(url);
        expect(seen.get(body) ?? etag).toBe(etag);
        seen.set(body, etag);
      }
      expect(seen.size).toBe(9);
      expect(new Set(seen.values()).size).toBe(9);
    });

    test("lists in another order are the same registration, and the first order stays", async () => {
      const lists = {
        capabilities: ["b", "a", "b", "c"],
        frontends: ["http://b/", "http://a/", "https://a/"],
        capacity: [
          { sku: "H200", workers: 8 },
          { sku: "H100", workers: 8 },
          { sku: "H100", workers: 4 },
        ],
      };
      const { key } = registration();
      await register(url, registration({ key, ...lists }));
      const before = await getList(url);
      await register(
        url,
        registration({
          key,
          capabilities: ["c", "b", "a", "b"],
          frontends: ["https://A:443", "http://a:80", "HTTP://b"],
          capacity: lists.capacity.toReversed(),
        }),
      );
      expect(await getList(url)).toEqual(before);
    });

    test("lists that hold a member another number of times are not the same", async () => {
      const { key } = registration();
      for (const capabilities of [
        ["a", "a", "b"],
        ["a", "b", "b"],
        ["a", "b"],
      ]) {
        await register(url, registration({ key, capabilities }));
        expect((await getPool(url, key))?.capabilities).toEqual(capabilities);
      }
      const once = [
        { sku: "1 H100", workers: 2 },
        { sku: "H100", workers: 21 },
      ];
      const swapped = [
        { sku: "1 H100", workers: 21 },
        { sku: "H100", workers: 2 },
      ];
      for (const capacity of [once, swapped]) {
        await register(url, registration({ key, capacity }));
        expect((await getPool(url, key))?.capacity).toEqual(capacity);
      }
    });

    test("a registration that is refused changes nothing", async () => {
      const { key } = registration();
      await register(url, registration({ key }));
      const before = await getList(url);
      const changed = registration({ key, model: "changed" });
      for (const fault of [
        { model: "" },
        { location: {} },
        { capabilities: [""] },
        { frontends: ["http://a/x"] },
        { capacity: [{ sku: "H100", workers: -1 }] },
      ]) {
        await refuses(url, { ...changed, ...fault });
        expect(await getList(url)).toEqual(before);
      }
      await expectRefusal(
        await postText(url, JSON.stringify(changed), { "Content-Type": "text/plain" }),
        415,
        [],
      );
      await refusesText(url, `${JSON.stringify(changed)}x`);
      expect(await getList(url)).toEqual(before);
    });
  });
}

function order(url: string): void {
  describe("order", () => {
    const byCodeUnits = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);

    test("pools are sorted by cluster, namespace and name in code-unit order", async () => {
      const unique = freshKey().cluster_id;
      // A surrogate sorts before U+FF5E as a code unit, and after it as a code point or as UTF-8.
      const texts = ["", "-b", "!", "/", "A", "Z", "a", "é", "e\u0301", "\uff5e", "🚀", "10", "9"];
      const all = [
        ...texts.map((text) => freshKey({ cluster_id: unique + text })),
        ...texts.map((text) => freshKey({ cluster_id: unique, namespace: `n${text}` })),
        ...texts.map((text) =>
          freshKey({ cluster_id: unique, namespace: "n", dgd_name: `d${text}` }),
        ),
      ];
      const mixed = all.toSorted((a, b) =>
        byCodeUnits(Bun.hash(JSON.stringify(a)).toString(), Bun.hash(JSON.stringify(b)).toString()),
      );
      for (const key of mixed) await register(url, registration({ key }));
      const ours = (await getPools(url)).pools
        .map(({ key }) => key)
        .filter((key) => key.cluster_id.startsWith(unique));
      const sorted = all.toSorted(
        (a, b) =>
          byCodeUnits(a.cluster_id, b.cluster_id) ||
          byCodeUnits(a.namespace, b.namespace) ||
          byCodeUnits(a.dgd_name, b.dgd_name),
      );
      expect(ours).toEqual(sorted);
    });

    test("the whole list is in order, and no key is in it twice", async () => {
      const { pools } = await getPools(url);
      for (const [index, { key }] of pools.entries()) {
        const next = pools[index + 1]?.key;
        if (next === undefined) continue;
        const order =
          byCodeUnits(key.cluster_id, next.cluster_id) ||
          byCodeUnits(key.namespace, next.namespace) ||
          byCodeUnits(key.dgd_name, next.dgd_name);
        expect(order, `${brief(key)} before ${brief(next)}`).toBe(-1);
      }
    });
  });
}
