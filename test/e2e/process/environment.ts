import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { expectStartupError } from "../../support/outcomes.ts";
import { getPools, post, register, registerMany, registration } from "../../support/relay.ts";
import {
  forEachOf,
  freePort,
  Process,
  projectRoot,
  run,
  Service,
  temporaryFolder,
} from "../../support/service.ts";
import { until } from "../../support/until.ts";

const TEXT_LINE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARN|ERROR) +[a-z]+: \S/;

function expectJsonLine(line: string): void {
  const parsed: unknown = JSON.parse(line);
  expect(parsed, line).toMatchObject({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level: expect.stringMatching(/^(DEBUG|INFO|WARN|ERROR)$/),
    message: expect.any(String),
  });
}

const level = (line: string) => /^\S+ (\w+)/.exec(line)?.[1];

/** What a service has logged, but that it couldn't run for a while on a machine that is busy. */
function saidBy(service: Process): string[] {
  return service.lines.filter((line) => !line.includes("the process was not running"));
}

export function environmentTests(command: readonly string[]): void {
  /**
   * Everything that the service logs with this environment from its start to its end, with `during`
   * between the two. It may be silent, so its port is chosen beforehand.
   */
  const logOf = async (
    env: Record<string, string>,
    during: (url: string) => Promise<void> = async () => {},
  ): Promise<string[]> => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await using service = new Process(command, { args: ["--listen", `127.0.0.1:${port}`], env });
    await until("the service", () =>
      fetch(`${url}/healthz`).then(
        () => true,
        () => undefined,
      ),
    );
    await during(url);
    service.kill("SIGTERM");
    expect(await service.ended()).toEqual({ status: 0, signal: null });
    expect(service.stdout).toBe("");
    return service.lines;
  };
  /** Makes the service log a pool, and a warning about it. */
  const disagree = async (url: string) => {
    const body = registration();
    await register(url, body);
    await register(url, { ...body, model: "another" });
  };

  describe("DYN_LOG", () => {
    test("is the least level that is logged, info where it is not set", async () => {
      const levels: Record<string, string[]> = {
        trace: ["INFO", "WARN"],
        debug: ["INFO", "WARN"],
        info: ["INFO", "WARN"],
        warn: ["WARN"],
        error: [],
        off: [],
        "": ["INFO", "WARN"],
      };
      await forEachOf(Object.entries(levels), async ([value, shown]) => {
        const lines = await logOf({ DYN_LOG: value }, disagree);
        for (const line of lines) expect(line, value).toMatch(TEXT_LINE);
        for (const each of ["INFO", "WARN"]) {
          expect(
            lines.some((line) => level(line) === each),
            `${value} ${each}`,
          ).toBe(shown.includes(each));
        }
        if (shown.length === 0) expect(lines, value).toEqual([]);
      });
      expect((await logOf({})).map(level)).toContain("INFO");
    });

    test("takes entries for modules, and ignores those that it does not know", async () => {
      const filters: Record<string, string[]> = {
        "info,dynamo_llm=debug": ["INFO"],
        "warn,dynamo_llm=trace,h2=info": [],
        "info,dynamo_llm::http=nonsense": ["INFO"],
        "hyper=off": ["INFO"],
        " warn , hyper = off ": [],
        "hyper=info,warn": [],
        ",,warn,": [],
      };
      await forEachOf(Object.entries(filters), async ([value, shown]) => {
        const lines = await logOf({ DYN_LOG: value });
        expect([...new Set(lines.map(level))].sort(), value).toEqual(shown);
        expect(lines.join("\n"), value).not.toContain("DYN_LOG");
      });
    });

    test("with a level that it does not know is a warning, and info", async () => {
      await forEachOf(["loud", "warning", "info,loud", "loud,hyper=debug"], async (value) => {
        const lines = await logOf({ DYN_LOG: value });
        expect(lines.map(level), value).toContain("INFO");
        const warnings = lines.filter((line) => level(line) === "WARN" && /DYN_LOG/.test(line));
        expect(warnings, value).toHaveLength(1);
      });
    });

    test("does not silence the error that keeps the service from starting", async () => {
      const launch = { args: ["--listen", "192.0.2.1:0"], env: { DYN_LOG: "off" } };
      await expectStartupError(command, launch, "192.0.2.1");
    });
  });

  describe("DYN_LOGGING_JSONL", () => {
    test("makes every line one JSON object", async () => {
      await forEachOf(["1", "true"], async (value) => {
        const env = { DYN_LOGGING_JSONL: value, DYN_LOG: "debug" };
        await using service = await Service.start(command, {
          env,
          args: ["--heartbeat-interval-secs", "1", "--lease-duration-secs", "2"],
        });
        const odd = { cluster_id: '"\\\u2028{', namespace: "\u202e🚀", dgd_name: "a b=c" };
        await register(service.url, registration({ key: odd }));
        await register(service.url, registration({ key: odd, model: "another" }));
        expect((await post(service.url, { model: "\x1b" })).status).toBe(400);
        await service.says(/expired/);
        await service.stop();
        expect(service.lines.length).toBeGreaterThanOrEqual(6);
        for (const line of service.lines) expectJsonLine(line);
      });
    });

    test("makes an object of the warning about DYN_LOG as well", async () => {
      const env = { DYN_LOGGING_JSONL: "1", DYN_LOG: 'loud"\x1b[31m' };
      await using service = await Service.start(command, { env });
      await service.stop();
      for (const line of service.lines) expectJsonLine(line);
      expect(service.stderr).not.toContain("\x1b");
    });

    test("otherwise leaves lines for people, one for each event", async () => {
      await forEachOf(["0", "false", ""], async (value) => {
        const lines = await logOf({ DYN_LOGGING_JSONL: value }, disagree);
        for (const line of lines) expect(line, value).toMatch(TEXT_LINE);
      });
      await using service = await Service.start(command);
      const before = saidBy(service).length;
      const key = {
        cluster_id: "a\u2028b\u2029c",
        namespace: "\u202e",
        dgd_name: 'x" level=ERROR',
      };
      await register(service.url, registration({ key }));
      await service.says(/added/);
      expect(saidBy(service)).toHaveLength(before + 1);
      expect(service.stderr).not.toMatch(/[\u2028\u2029\u202e]/);
    });
  });

  test("no colours reach a file or a pipe", async () => {
    expect((await logOf({}, disagree)).join("\n")).not.toContain("\x1b");
  });

  test("NO_COLOR takes the colours from a terminal", async () => {
    const shownOnTerminal = async (env: Record<string, string>) => {
      let shown = "";
      const child = Bun.spawn([...command, "--listen", "127.0.0.1:0"], {
        cwd: projectRoot,
        env: { PATH: process.env.PATH ?? "", TERM: "xterm", ...env },
        terminal: {
          cols: 300,
          rows: 50,
          data: (_, bytes) => {
            shown += new TextDecoder().decode(bytes);
          },
        },
      });
      try {
        return await until("a line", () => (shown.includes("\n") ? shown : undefined));
      } finally {
        child.kill("SIGKILL");
        await child.exited;
        child.terminal?.close();
      }
    };
    expect(await shownOnTerminal({})).toContain("\x1b[");
    expect(await shownOnTerminal({ NO_COLOR: "" })).toContain("\x1b[");
    expect(await shownOnTerminal({ NO_COLOR: "1" })).not.toContain("\x1b[");
    expect(await shownOnTerminal({ NO_COLOR: "1" })).toContain("serving");
  });

  describe("the log", () => {
    test("starts with the version, the address, the mode, the store and the lease", async () => {
      await using service = await Service.start(command, { args: ["--lease-duration-secs", "17"] });
      const [first = ""] = service.lines;
      const words = [/\d+\.\d+\.\d+/, service.url, "registrations", "memory", /\b17\b/];
      for (const word of words) expect(first).toMatch(word);
      expect(service.stdout).toBe("");
    });

    test("ends with why the service stopped", async () => {
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        await using service = await Service.start(command);
        service.kill(signal);
        await service.ended();
        expect(service.lines.at(-1)).toContain(signal);
      }
    });

    test("tells of transitions only, never of each heartbeat", async () => {
      await using service = await Service.start(command, { env: { DYN_LOG: "info" } });
      const body = registration();
      for (let beat = 0; beat < 20; beat += 1) await register(service.url, body);
      await service.stop();
      const about = service.lines.filter((line) => line.includes(body.key.cluster_id));
      expect(about).toHaveLength(1);
      expect(about[0]).toContain(`${body.key.cluster_id}/dynamo/mocker`);
    });

    test("warns of a disagreement once a minute a pool, with the pool and the fields", async () => {
      await using service = await Service.start(command);
      const [one, two] = [registration(), registration()];
      for (let beat = 0; beat < 20; beat += 1) {
        const model = `model-${beat % 2}`;
        const location = { region: `region-${beat % 2}` };
        await register(service.url, { ...one, model, location });
        await register(service.url, { ...two, capacity: [{ sku: "H100", workers: beat }] });
      }
      await service.stop();
      for (const [{ key }, fields, others] of [
        [one, ["model", "location.region"], ["capacity", "frontends"]],
        [two, ["capacity"], ["model", "location"]],
      ] as const) {
        const warnings = service.lines.filter(
          (line) => level(line) === "WARN" && line.includes(`${key.cluster_id}/dynamo/mocker`),
        );
        expect(warnings).toHaveLength(1);
        for (const field of fields) expect(warnings[0]).toContain(field);
        for (const field of others) expect(warnings[0]).not.toContain(field);
      }
    });

    test("has nothing to say of a client that is wrong or goes away", async () => {
      await using service = await Service.start(command);
      const before = saidBy(service).length;
      expect((await post(service.url, {})).status).toBe(400);
      expect((await fetch(`${service.url}/nowhere`)).status).toBe(404);
      await service.stop();
      const lines = saidBy(service).slice(before);
      expect(lines.filter((line) => level(line) !== "INFO")).toEqual([]);
    });
  });

  test("a reader of the log that stalls holds up neither requests nor the end", async () => {
    using folder = temporaryFolder();
    const pipe = join(folder.path, "log");
    await run(["mkfifo", pipe]);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    // Opened for reading too, so that it is there, but nobody reads.
    const script = 'pipe=$1; shift; exec "$@" 2<>"$pipe"';
    await using service = new Process(["sh", "-c", script, "sh", pipe, ...command], {
      args: ["--listen", `127.0.0.1:${port}`],
    });
    const healthz = async () => (await fetch(`${url}/healthz`)).status === 200 || undefined;
    await until("the service to serve", () => healthz().catch(() => undefined));
    const key = (n: number) => ({ cluster_id: "c".repeat(200), namespace: "n", dgd_name: `d${n}` });
    await registerMany(
      url,
      Array.from({ length: 2000 }, (_, n) => JSON.stringify(registration({ key: key(n) }))),
    );
    expect((await getPools(url)).pools).toHaveLength(2000);
    service.kill("SIGTERM");
    expect(await service.ended()).toEqual({ status: 0, signal: null });
  });
}
