import { describe, expect, test } from "bun:test";
import { expectStartupError } from "../../support/outcomes.ts";
import { RawConnection } from "../../support/raw-http.ts";
import { Process, Service } from "../../support/service.ts";
import { within } from "../../support/until.ts";

function hasIpv6(): boolean {
  try {
    Bun.listen({ hostname: "::1", port: 0, socket: { data: () => {} } }).stop();
    return true;
  } catch {
    console.log("skipped: this machine has no IPv6");
    return false;
  }
}

export function listeningTests(command: readonly string[]): void {
  const listenOn = (address: string) => Service.start(command, { args: ["--listen", address] });
  const healthz = async (url: string) => (await fetch(`${url}/healthz`)).status;
  const refusesToShare = (address: string) =>
    expectStartupError(command, { args: ["--listen", address] }, address, "in use");

  test("port 0 takes a free port, and the log names it", async () => {
    await using one = await listenOn("127.0.0.1:0");
    await using two = await listenOn("127.0.0.1:0");
    expect(one.port).toBeGreaterThan(0);
    expect(two.port).toBeGreaterThan(0);
    expect(one.port).not.toBe(two.port);
    expect(await healthz(one.url)).toBe(200);
    expect(await healthz(two.url)).toBe(200);
  });

  test("0.0.0.0 serves on every IPv4 address", async () => {
    await using service = await listenOn("0.0.0.0:0");
    expect(await healthz(`http://127.0.0.1:${service.port}`)).toBe(200);
    expect(await healthz(`http://127.0.0.2:${service.port}`)).toBe(200);
  });

  test("127.0.0.1 serves on no other address", async () => {
    await using service = await listenOn("127.0.0.1:0");
    const elsewhere = RawConnection.open(`http://127.0.0.2:${service.port}`);
    await expect(elsewhere).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("an address that this machine does not have is a fault at the start", async () => {
    await expectStartupError(command, { args: ["--listen", "192.0.2.1:0"] }, "192.0.2.1:0");
  });

  describe("an address in use is a fault at the start, always:", () => {
    test("the same address", async () => {
      await using service = await listenOn("127.0.0.1:0");
      await refusesToShare(`127.0.0.1:${service.port}`);
      expect(await healthz(service.url)).toBe(200);
    });

    test("one address where every address is taken", async () => {
      await using service = await listenOn("0.0.0.0:0");
      await refusesToShare(`127.0.0.1:${service.port}`);
      await refusesToShare(`0.0.0.0:${service.port}`);
      expect(await healthz(`http://127.0.0.1:${service.port}`)).toBe(200);
    });

    test("every address where one is taken", async () => {
      await using service = await listenOn("127.0.0.1:0");
      await refusesToShare(`0.0.0.0:${service.port}`);
      expect(await healthz(service.url)).toBe(200);
    });

    test("a program that shares its port with whoever asks (SO_REUSEPORT)", async () => {
      for (const hostname of ["127.0.0.1", "0.0.0.0"]) {
        const other = Bun.serve({
          hostname,
          port: 0,
          reusePort: true,
          fetch: () => new Response(""),
        });
        try {
          await refusesToShare(`127.0.0.1:${other.port}`);
          await refusesToShare(`0.0.0.0:${other.port}`);
        } finally {
          await other.stop(true);
        }
      }
    });

    test("a program that is not a web server", async () => {
      const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
      try {
        await refusesToShare(`127.0.0.1:${other.port}`);
      } finally {
        other.stop(true);
      }
    });

    test("of two that start at the same time on one port, one serves", async () => {
      const probe = await listenOn("127.0.0.1:0");
      const { port } = probe;
      await probe.stop();
      const args = ["--listen", `127.0.0.1:${port}`];
      await using one = new Process(command, { args });
      await using two = new Process(command, { args });
      const ends = await within(20_000, "one to end", Promise.race([one.ended(), two.ended()]));
      expect(ends).toEqual({ status: 1, signal: null });
      const [loser, winner] = one.isRunning ? [two, one] : [one, two];
      expect(loser.stderr).toMatch(/^error: .*in use/m);
      await winner.says(/serving/);
      expect(winner.isRunning).toBe(true);
      winner.kill("SIGTERM");
      expect((await winner.ended()).status).toBe(0);
    });
  });

  test("the port is free again as soon as the service has stopped", async () => {
    await using first = await listenOn("127.0.0.1:0");
    const address = `127.0.0.1:${first.port}`;
    using idle = await RawConnection.open(first.url);
    idle.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await idle.response();
    await first.stop();
    await using second = await listenOn(address);
    expect(await healthz(second.url)).toBe(200);
  });

  describe.skipIf(!hasIpv6())("IPv6", () => {
    test("[::] serves IPv6 and IPv4", async () => {
      await using service = await listenOn("[::]:0");
      expect(await healthz(`http://[::1]:${service.port}`)).toBe(200);
      expect(await healthz(`http://127.0.0.1:${service.port}`)).toBe(200);
    });

    test("[::1] serves IPv6 alone, and the log has the address in brackets", async () => {
      await using service = await listenOn("[::1]:0");
      expect(service.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
      expect(await healthz(service.url)).toBe(200);
    });

    test("an address in use is a fault between IPv6 and IPv4 too", async () => {
      {
        await using service = await listenOn("[::]:0");
        await refusesToShare(`0.0.0.0:${service.port}`);
        await refusesToShare(`127.0.0.1:${service.port}`);
        await refusesToShare(`[::]:${service.port}`);
        await refusesToShare(`[::1]:${service.port}`);
      }
      {
        await using service = await listenOn("0.0.0.0:0");
        await refusesToShare(`[::]:${service.port}`);
      }
      await using service = await listenOn("[::1]:0");
      await refusesToShare(`[::]:${service.port}`);
      await refusesToShare(`[::1]:${service.port}`);
    });

    test("an address in use is a fault where the other shares its port (SO_REUSEPORT)", async () => {
      for (const [hostname, addresses] of [
        ["::", ["[::]", "[::1]", "0.0.0.0", "127.0.0.1"]],
        ["::1", ["[::]", "[::1]"]],
        ["0.0.0.0", ["[::]"]],
      ] as const) {
        const other = Bun.serve({
          hostname,
          port: 0,
          reusePort: true,
          fetch: () => new Response(""),
        });
        try {
          for (const address of addresses) await refusesToShare(`${address}:${other.port}`);
        } finally {
          await other.stop(true);
        }
      }
    });
  });
}
