import { expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestPlugin } from "../support/exec-plugin.ts";
import { FakeApiServer, refuse, silent } from "../support/fake-api-server.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryFolder } from "../support/service.ts";
import { apiErrorOf, clusterOf, listed, openWith, watched } from "../support/slice-client.ts";
import { thrownBy } from "../support/thrown-by.ts";
import { until } from "../support/until.ts";

async function setUp() {
  const folder = temporaryFolder();
  const fake = await FakeApiServer.start();
  return {
    fake,
    folder: folder.path,
    clock: new FakeClock(),
    ...recordedLog(),
    cluster: clusterOf(fake),
    /** Who the last request came from. */
    last: () => fake.requests.at(-1)?.headers.get("authorization"),
    [Symbol.dispose]() {
      fake[Symbol.dispose]();
      folder[Symbol.dispose]();
    },
  };
}

test("a token, and a username with its password, are sent", async () => {
  using given = await setUp();
  const { cluster, last, fake } = given;
  await listed(await openWith({ cluster, user: { token: "abc", as: "somebody" } }));
  expect(last()).toBe("Bearer abc");
  expect(fake.requests[0]?.headers.get("impersonate-user")).toBe("somebody");
  await listed(await openWith({ cluster, user: { username: "a", password: "b" } }));
  expect(last()).toBe("Basic YTpi");
  await listed(await openWith({ cluster }));
  expect(last()).toBeNull();
});

test("a token that rotates on disk is in use within 95 s, for a list and for a watch that is open", async () => {
  using given = await setUp();
  const { cluster, clock, fake, folder, last } = given;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "first\n");
  const api = await openWith({ cluster, user: { tokenFile, token: "unused" } }, { clock });
  await listed(api);
  expect(last()).toBe("Bearer first");
  const watch = watched(api, fake.resourceVersion);
  await until("the watch", () => (fake.watching === 1 ? true : undefined));

  writeFileSync(tokenFile, "second\n");
  clock.advance(60_000);
  // Ended in order, so that it is begun again with the new token.
  expect(await watch).toEqual([]);
  await listed(api);
  expect(last()).toBe("Bearer second");
  expect(clock.timers).toBe(0);
});

test("a token that rotates right after it was read is in use within 95 s all the same", async () => {
  using given = await setUp();
  const { cluster, clock, fake, folder } = given;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "first");
  const api = await openWith({ cluster, user: { tokenFile } }, { clock });
  clock.advance(59_000);
  const watch = watched(api, fake.resourceVersion);
  await until("the watch", () => (fake.watching === 1 ? true : undefined));
  for (const ms of [1000, 60_000]) {
    clock.advance(ms);
    await listed(api);
  }
  writeFileSync(tokenFile, "second");
  clock.advance(60_000);
  expect(await watch).toEqual([]);
});

test("a watch whose token stays goes on", async () => {
  using given = await setUp();
  const { cluster, clock, fake, folder } = given;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "first");
  const api = await openWith({ cluster, user: { tokenFile } }, { clock });
  const controller = new AbortController();
  const watch = thrownBy(() => watched(api, fake.resourceVersion, { signal: controller.signal }));
  await until("the watch", () => (fake.watching === 1 ? true : undefined));
  for (let minute = 0; minute < 4; minute += 1) {
    clock.advance(60_000);
    await Bun.sleep(5);
  }
  expect(fake.watching).toBe(1);
  const reason = new Error("enough");
  controller.abort(reason);
  expect(await watch).toBe(reason);
  expect(clock.timers).toBe(0);
});

test("a token that was refused is read again at once", async () => {
  using given = await setUp();
  const { cluster, clock, fake, folder } = given;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "old");
  const api = await openWith({ cluster, user: { tokenFile } }, { clock });
  fake.allowed = new Set(["new"]);
  const error = await apiErrorOf(() => listed(api));
  expect(error.message).toContain(`does not accept the token in ${tokenFile}`);
  writeFileSync(tokenFile, "new");
  expect(await listed(api)).toEqual([]);
});

test("a token file that can't be read, or is empty, leaves the token before it in use", async () => {
  using given = await setUp();
  const { cluster, clock, folder, last, log, lines } = given;
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "first");
  const api = await openWith({ cluster, user: { tokenFile } }, { clock, log });
  writeFileSync(tokenFile, "");
  clock.advance(60_000);
  await listed(api);
  expect(last()).toBe("Bearer first");
  rmSync(tokenFile);
  clock.advance(60_000);
  await listed(api);
  expect(last()).toBe("Bearer first");
  expect(lines.map(({ level, fields }) => [level, fields.problem])).toEqual([
    ["warn", `${tokenFile}: there is no bearer token in it`],
    ["warn", expect.stringContaining(`${tokenFile}: ENOENT`)],
  ]);
});

test("a token stands in for a token file until there is one", async () => {
  using given = await setUp();
  const { cluster, clock, folder, last } = given;
  const tokenFile = join(folder, "token");
  const api = await openWith({ cluster, user: { tokenFile, token: "fixed" } }, { clock });
  await listed(api);
  expect(last()).toBe("Bearer fixed");
  writeFileSync(tokenFile, "rotated");
  await listed(api);
  expect(last()).toBe("Bearer rotated");
});

test("an exec plugin's token is used until it expires, and then asked for anew", async () => {
  using given = await setUp();
  const { cluster, clock, folder, last } = given;
  const plugin = new TestPlugin(folder);
  const expiresInMs = (ms: number) => new Date(clock.wallMs() + ms).toISOString();
  plugin.handsOut({ token: "one", expirationTimestamp: expiresInMs(60_000) });
  const api = await openWith({ cluster, user: plugin.user }, { clock });
  // Not before it is needed.
  expect(plugin.runs).toEqual([]);
  await listed(api);
  await listed(api);
  expect(last()).toBe("Bearer one");
  expect(plugin.runs).toHaveLength(1);
  expect(plugin.runs[0]).toStartWith(
    'reader {"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"',
  );

  plugin.handsOut({ token: "two" });
  clock.advance(59_999);
  await listed(api);
  expect(last()).toBe("Bearer one");
  clock.advance(1);
  await listed(api);
  expect(last()).toBe("Bearer two");
  // One without an end is used until it is refused.
  clock.advance(100 * 86_400_000);
  await listed(api);
  expect(plugin.runs).toHaveLength(2);
});

test("an exec plugin's token that was refused is asked for anew", async () => {
  using given = await setUp();
  const { cluster, clock, fake, folder } = given;
  const plugin = new TestPlugin(folder);
  plugin.handsOut({ token: "one" });
  const api = await openWith({ cluster, user: plugin.user }, { clock });
  await listed(api);
  fake.allowed = new Set(["two"]);
  const error = await apiErrorOf(() => listed(api));
  expect(error.message).toContain(`what the exec plugin '${plugin.command.slice(0, 10)}`);
  plugin.handsOut({ token: "two" });
  expect(await listed(api)).toEqual([]);
  expect(plugin.runs).toHaveLength(2);
  // What is forbidden is no matter of who asks.
  fake.break(refuse(403, "Forbidden"), "list");
  await apiErrorOf(() => listed(api));
  await apiErrorOf(() => listed(api));
  expect(plugin.runs).toHaveLength(2);
});

test("a token wins over an exec plugin", async () => {
  using given = await setUp();
  const { cluster, folder, last } = given;
  const plugin = new TestPlugin(folder);
  await listed(await openWith({ cluster, user: { ...plugin.user, token: "mine" } }));
  expect(last()).toBe("Bearer mine");
  expect(plugin.runs).toEqual([]);
});

test("an exec plugin that hands out nothing says so in a line", async () => {
  using given = await setUp();
  const { cluster, fake, folder } = given;
  const plugin = new TestPlugin(folder);
  const api = await openWith({ cluster, user: plugin.user });
  const cases = [
    ["printf 'you are\\nlogged out' >&2; exit 3", "failed with status 3: you are\\u{a}logged out"],
    ["exit 1", "failed with status 1"],
    ["echo garbage", "wrote no ExecCredential"],
    ["echo '{\"status\":{}}'", "wrote no ExecCredential"],
  ] as const;
  for (const [script, words] of cases) {
    plugin.does(script);
    const error = await apiErrorOf(() => listed(api));
    expect(error.fault).toBe("denied");
    expect(error.message).toContain(words);
  }
  rmSync(plugin.command);
  const error = await apiErrorOf(() => listed(api));
  expect(error.fault).toBe("denied");
  expect(error.message).toContain("can't be run: ENOENT");
  expect(fake.requests).toEqual([]);
});

test("an exec plugin that hangs is ended, by the signal or after a minute", async () => {
  using given = await setUp();
  const { cluster, clock, folder } = given;
  const plugin = new TestPlugin(folder);
  plugin.does("echo $$ > pid; exec sleep 100");
  const isEnded = () => {
    try {
      return process.kill(Number(readFileSync(join(folder, "pid"), "utf8")), 0) ? undefined : true;
    } catch {
      return true;
    }
  };
  const api = await openWith({ cluster, user: plugin.user }, { clock });
  const began = (count: number) =>
    until("the plugin to run", () => (plugin.runs.length === count ? true : undefined));
  const controller = new AbortController();
  const reason = new Error("enough");
  const stopped = thrownBy(() => listed(api, controller.signal));
  await began(1);
  controller.abort(reason);
  expect(await stopped).toBe(reason);
  await until("the plugin to end", isEnded);

  const late = apiErrorOf(() => listed(api));
  await began(2);
  clock.advance(60_000);
  expect((await late).message).toContain("can't be run: no answer within 60 s");
  await until("the plugin to end", isEnded);
  expect(clock.timers).toBe(0);
});

test("a silent watch keeps no timer once it was left", async () => {
  using given = await setUp();
  const { cluster, clock, fake } = given;
  const api = await openWith({ cluster }, { clock });
  fake.break(silent, "watch");
  const controller = new AbortController();
  const ended = thrownBy(() => watched(api, "1", { signal: controller.signal }));
  await until("the watch", () => (clock.timers === 1 ? true : undefined));
  controller.abort(new Error("enough"));
  await ended;
  expect(clock.timers).toBe(0);
});
