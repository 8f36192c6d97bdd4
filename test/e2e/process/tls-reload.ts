import { afterAll, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pairs } from "../../fixtures/tls.ts";
import { RawConnection } from "../../support/raw-http.ts";
import { Service, temporaryFolder } from "../../support/service.ts";
import { TlsLoad } from "../../support/tls-load.ts";
import { until, within } from "../../support/until.ts";

type Pair = (typeof pairs)[keyof typeof pairs];

const DEADLINE_MS = 60_000;
/** How soon what has changed on disk is served. */
const SERVED_MS = 10_000;

export function tlsReloadTests(command: readonly string[]): void {
  const root = temporaryFolder();
  afterAll(() => root[Symbol.dispose]());
  let folders = 0;
  /** A folder of its own for a pair, and the flags of a service with the files in it. */
  const place = () => {
    folders += 1;
    const folder = join(root.path, String(folders));
    mkdirSync(folder);
    const at = (name: string) => join(folder, name);
    return {
      at,
      flags: ["--tls-cert-path", at("tls.crt"), "--tls-key-path", at("tls.key")],
      write({ cert, key }: Pair) {
        writeFileSync(at("tls.crt"), cert);
        writeFileSync(at("tls.key"), key);
      },
      /** Writes a pair as the kubelet does: into a new folder, to which a symbolic link then points. */
      publish({ cert, key }: Pair) {
        const version = at(`..${crypto.randomUUID()}`);
        mkdirSync(version);
        writeFileSync(join(version, "tls.crt"), cert);
        writeFileSync(join(version, "tls.key"), key);
        symlinkSync(version, at("..next"));
        renameSync(at("..next"), at("..data"));
      },
    };
  };
  const servesWith = async (url: string, { cert }: Pair) => {
    const asked = fetch(`${url}/healthz`, { tls: { ca: cert }, headers: { Connection: "close" } });
    return await asked.then(
      ({ status }) => status === 200,
      () => false,
    );
  };
  const comesToServe = (url: string, pair: Pair) =>
    until("the pair", async () => ((await servesWith(url, pair)) ? true : undefined), SERVED_MS);
  /** Checks that nothing was lost, and that there was something that could have been. */
  const expectNoLoss = (load: TlsLoad) => {
    expect(load.lost).toEqual([]);
    expect(load.answered).toBeGreaterThan(500);
  };

  test(
    "a pair that is overwritten, the key seconds after the certificate, is served within 10 s without a lost connection",
    async () => {
      const { at, flags, write } = place();
      write(pairs.one);
      await using service = await Service.start(command, { args: flags });
      const load = new TlsLoad(service.url);
      await using _ = load;
      expect(await servesWith(service.url, pairs.one)).toBe(true);
      writeFileSync(at("tls.crt"), pairs.two.cert);
      await Bun.sleep(5000);
      expect(await servesWith(service.url, pairs.one)).toBe(true);
      writeFileSync(at("tls.key"), pairs.two.key);
      await comesToServe(service.url, pairs.two);
      expect(await servesWith(service.url, pairs.one)).toBe(false);
      // Whoever was silent during the change has asked again by then.
      await Bun.sleep(1500);
      expectNoLoss(load);
    },
    DEADLINE_MS,
  );

  test(
    "a symbolic link that is swapped, again and again, is followed within 10 s without a lost connection",
    async () => {
      const { at, flags, publish } = place();
      publish(pairs.one);
      symlinkSync("..data/tls.crt", at("tls.crt"));
      symlinkSync("..data/tls.key", at("tls.key"));
      await using service = await Service.start(command, { args: flags });
      const load = new TlsLoad(service.url);
      await using _ = load;
      for (const pair of [pairs.two, pairs.one, pairs.two]) {
        publish(pair);
        await comesToServe(service.url, pair);
      }
      await Bun.sleep(1500);
      expectNoLoss(load);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a pair that doesn't match, or can't be read, is refused with one warning, and the one before serves on",
    async () => {
      const { at, flags, write } = place();
      write(pairs.one);
      await using service = await Service.start(command, { args: flags });
      writeFileSync(at("tls.crt"), pairs.two.cert);
      const [line] = await service.says(/^.*WARN.*TLS.*$/m, SERVED_MS);
      for (const path of [at("tls.crt"), at("tls.key")]) expect(line).toContain(path);
      rmSync(at("tls.key"));
      await Bun.sleep(3000);
      writeFileSync(at("tls.key"), "");
      await Bun.sleep(3000);
      expect(await servesWith(service.url, pairs.one)).toBe(true);
      expect(service.lines.filter((each) => each.includes("WARN"))).toHaveLength(1);
      writeFileSync(at("tls.key"), pairs.two.key);
      await comesToServe(service.url, pairs.two);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "a connection that was open when the pair changed is told that it ends, and not cut",
    async () => {
      const { flags, write } = place();
      write(pairs.one);
      await using service = await Service.start(command, { args: flags });
      const tls = { ca: pairs.one.cert };
      using connection = await RawConnection.open(service.url, tls);
      const ask = async () => {
        connection.send("GET /pools HTTP/1.1\r\nHost: x\r\n\r\n");
        return await connection.response();
      };
      expect((await ask()).headers.get("connection")).toBeNull();
      write(pairs.two);
      await comesToServe(service.url, pairs.two);
      const last = await ask();
      expect(last.status).toBe(200);
      expect(last.headers.get("connection")).toBe("close");
      await within(5000, "the end of the connection", connection.closed);
    },
    DEADLINE_MS,
  );

  test.concurrent(
    "after a change, SIGTERM ends all connections in order, and the address is free",
    async () => {
      const { flags, write } = place();
      write(pairs.one);
      await using service = await Service.start(command, { args: flags });
      const half = (connection: RawConnection) =>
        connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\n");
      using before = await RawConnection.open(service.url, { ca: pairs.one.cert });
      half(before);
      write(pairs.two);
      await comesToServe(service.url, pairs.two);
      using after = await RawConnection.open(service.url, { ca: pairs.two.cert });
      half(after);
      await Bun.sleep(200);
      service.kill("SIGTERM");
      await service.says(/stopping/);
      for (const connection of [before, after]) {
        connection.send("\r\n");
        expect((await connection.response()).status).toBe(503);
      }
      expect(await service.ended()).toEqual({ status: 0, signal: null });
      const args = [...flags, "--listen", `127.0.0.1:${service.port}`];
      await using next = await Service.start(command, { args });
      expect(await servesWith(next.url, pairs.two)).toBe(true);
    },
    DEADLINE_MS,
  );
}
