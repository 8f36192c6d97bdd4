import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { exchange, RawConnection } from "../../support/raw-http.ts";
import { freshKey, getList, post, postText, register, registration } from "../../support/relay.ts";
import { Service, temporaryFolder } from "../../support/service.ts";

export function freshServiceTests(command: readonly string[]): void {
  const start = (...args: string[]) => Service.start(command, { args });
  const routers = async (url: string) => await (await fetch(`${url}/routers`)).text();

  test("the first list is empty and not complete", async () => {
    await using service = await start();
    expect((await getList(service.url)).body).toBe('{"pools":[],"complete":false}');
  });

  test("a registration is answered with the intervals of the flags", async () => {
    await using standard = await start();
    expect(await (await post(standard.url, registration())).text()).toBe(
      '{"heartbeat_interval_s":5,"lease_duration_s":15}',
    );
    await using other = await start("--heartbeat-interval-secs=7", "--lease-duration-secs=0080");
    expect(await (await post(other.url, registration())).text()).toBe(
      '{"heartbeat_interval_s":7,"lease_duration_s":80}',
    );
  });

  test("there are no routers unless flags name them", async () => {
    await using service = await start();
    expect(await routers(service.url)).toBe('{"routers":[]}');
  });

  test("routers are sorted by replica in code-unit order, and their URLs serialised", async () => {
    const given = [
      "\uff5e=http://a:80",
      "🚀=https://A:443/",
      "b=HTTP://B:8000",
      "a-=http://[::0:1]:8000/",
      "a=http://10.0.0.1:8000/",
      "B=http://bücher.example",
      "__proto__=http:\\\\p",
      "é=http://e/",
      "a/b= http://c/ ",
    ];
    await using service = await start(...given.map((router) => `--router=${router}`));
    expect(await routers(service.url)).toBe(
      JSON.stringify({
        routers: [
          { replica: "B", url: "http://xn--bcher-kva.example/" },
          { replica: "__proto__", url: "http://p/" },
          { replica: "a", url: "http://10.0.0.1:8000/" },
          { replica: "a-", url: "http://[::1]:8000/" },
          { replica: "a/b", url: "http://c/" },
          { replica: "b", url: "http://b:8000/" },
          { replica: "é", url: "http://e/" },
          { replica: "🚀", url: "https://a/" },
          { replica: "\uff5e", url: "http://a/" },
        ],
      }),
    );
  });

  test("replicas with the same data give the same bytes and the same ETags", async () => {
    await using one = await start("--router=a=http://a/", "--router=b=http://b/");
    await using two = await start("--router=b=http://b", "--router=a=http://a");
    const bodies = Array.from({ length: 50 }, () => registration());
    for (const body of bodies) await register(one.url, body);
    for (const body of bodies.toReversed()) await register(two.url, body);
    expect(await getList(one.url)).toEqual(await getList(two.url));
    for (const path of ["/pools", "/routers"]) {
      for (const coding of ["identity", "gzip", "zstd"]) {
        const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${coding}\r\n\r\n`;
        const [a, b] = [await exchange(one.url, request), await exchange(two.url, request)];
        expect(a.headers.get("etag")).toBe(b.headers.get("etag"));
        expect(a.body.equals(b.body)).toBe(true);
      }
    }
  });

  test("a body of up to 1 KiB is not compressed, and a larger one is", async () => {
    await using service = await start();
    const key = freshKey();
    await register(service.url, registration({ key, model: "m" }));
    const { body } = await getList(service.url);
    for (const [bytes, coding] of [
      [1024, null],
      [1025, "gzip"],
    ] as const) {
      const model = "m".repeat(1 + bytes - body.length);
      await register(service.url, registration({ key, model }));
      const request = "GET /pools HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
      const { headers } = await exchange(service.url, request);
      expect((await getList(service.url)).body).toHaveLength(bytes);
      expect(headers.get("content-encoding")).toBe(coding);
      expect(headers.get("vary")).toBe("Accept-Encoding");
    }
  });

  test("arktype is loaded for a body that is refused, and for no other", async () => {
    using folder = temporaryFolder();
    const probe = join(folder.path, "probe.js");
    // arktype can't be loaded without its registry, which is global.
    const answer = 'console.error("arktype is loaded: " + ("$ark" in globalThis))';
    await Bun.write(probe, `process.on("SIGUSR2", () => ${answer});`);
    await using service = await Service.start(command, {
      env: { BUN_OPTIONS: `--preload=${probe}` },
    });
    const isLoaded = async (times: number) => {
      service.kill("SIGUSR2");
      const said = await service.says(new RegExp(`(?:arktype is loaded: (\\w+)[^]*?){${times}}`));
      return said[1];
    };
    await register(service.url, registration());
    await register(service.url, registration({ frontends: [], capacity: null, extra: 1 }));
    expect((await postText(service.url, "{")).status).toBe(400);
    expect(await isLoaded(1)).toBe("false");
    const refused = await post(service.url, registration({ model: "", frontends: ["a", 1] }));
    expect(refused.status).toBe(400);
    expect(await refused.text()).toBe(
      "frontends[0] must be an http or https URL with a host and no path, query, fragment or user " +
        "(was 'a'); model must be a string that is not blank (was '')",
    );
    expect(await isLoaded(2)).toBe("true");
  });

  test("a restart loses the registrations and says so", async () => {
    await using first = await start();
    await register(first.url, registration());
    const { url } = first;
    await first.stop();
    await using second = await start(`--listen=${new URL(url).host}`);
    expect((await getList(second.url)).body).toBe('{"pools":[],"complete":false}');
  });

  test("memory stays bounded whatever is sent", async () => {
    await using service = await start();
    const peak = () => {
      const status = readFileSync(`/proc/${service.pid}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
    };
    await register(service.url, registration());
    const before = peak();
    const megabytes = 200;
    const piece = new Uint8Array(1_000_000).fill(0x20);
    for (const path of ["/pools", "/nowhere"]) {
      for (const headers of [
        "Content-Type: application/json\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked",
        `Content-Type: application/json\r\nContent-Length: ${megabytes * 1_000_000}`,
        `Content-Length: ${megabytes * 1_000_000}`,
      ]) {
        using connection = await RawConnection.open(service.url);
        connection.send(`POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`);
        const isChunked = headers.includes("chunked");
        for (let sent = 0; sent < megabytes && !connection.isClosed; sent += 1) {
          if (isChunked) connection.send(`${piece.length.toString(16)}\r\n`);
          await connection.sendAll(piece);
          if (isChunked) connection.send("\r\n");
        }
        expect((await connection.response()).status).toBeGreaterThanOrEqual(400);
      }
    }
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expect(peak() - before).toBeLessThan(megabytes / 2);
  });
}
