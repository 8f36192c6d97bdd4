import { expect, test } from "bun:test";
import { join } from "node:path";
import { FakeApiServer, hang, refuse } from "../../support/fake-api-server.ts";
import {
  answerOf,
  certificateFolder,
  certificates,
  frontendsOf,
  objectOf,
  relaysOf,
  Scene,
  type SceneOptions,
  startImporting,
  TOKEN,
} from "../../support/imports.ts";
import { issueCertificate } from "../../support/issue-certificate.ts";
import { kubeconfigText } from "../../support/kubeconfig.ts";
import { expectNoStackTrace, expectStartupError } from "../../support/outcomes.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { RecordingProxy } from "../../support/recording-proxy.ts";
import { expectRefusal, register } from "../../support/relay.ts";
import { once, type Service, temporaryFolder } from "../../support/service.ts";
import { clusterOf } from "../../support/slice-client.ts";
import { until } from "../../support/until.ts";
import { lists, names, registerSoon, Watch } from "../../support/watch.ts";

/** The longest that a token which rotates may stay unused, and a bit for a machine that is busy. */
const ROTATION_MS = 100_000;
const DEADLINE_MS = 120_000;
/** Long before the 10 s that running requests are given. */
const PROMPT_MS = 5000;

/** The users of kubeconfigs that show a certificate. */
const clientCertificates = once(async () => {
  await certificates();
  const user = async (subject: string, days: number) => {
    const { cert, key } = await issueCertificate(certificateFolder, { subject, days });
    return { "client-certificate": cert, "client-key": key };
  };
  return {
    valid: await user(`/CN=${TOKEN}`, 2),
    expired: await user(`/CN=${TOKEN}/OU=expired`, -1),
  };
});

/** Checks that the service is up, and says that and why it can't list; and keeps registrations. */
async function expectUnready({ url }: Service, ...words: readonly string[]): Promise<void> {
  expect(await answerOf(url, "/healthz")).toEqual([503, ""]);
  const reason = ["the slices have not been read yet", ...words];
  await expectRefusal(await fetch(`${url}/pools`), 503, reason);
  await expectRefusal(await fetch(`${url}/routers`), 503, reason);
  await register(url, poolNamed("early"));
}

/** Checks that the first list holds what was registered before it. */
async function expectReadySoon({ url }: Service, deadlineMs?: number): Promise<void> {
  // Nobody renews what was registered early.
  await using watch = new Watch(url, 30);
  await watch.for("the first list", ({ status }) => status === 200, deadlineMs);
  const [first] = watch.samples.filter(({ list }) => list !== undefined);
  expect(names(first?.list), first?.body).toEqual(["early"]);
  expect(first?.list?.pools[0]?.relay_identities).toEqual(["ip:10.1.0.1"]);
  for (const { status } of watch.samples) expect([200, 503]).toContain(status);
  expect(await answerOf(url, "/healthz")).toEqual([200, ""]);
  expect(await answerOf(url, "/routers")).toEqual([200, '{"routers":[]}']);
}

function putEarly(fake: FakeApiServer): void {
  fake.put(objectOf(relaysOf("mcs", "early")));
  fake.put(objectOf(frontendsOf("mcs", "early")));
}

/** A start with an API server that can't be read, or not yet. */
export function startUpTests(command: readonly string[]): void {
  const start = ({ prepare, ...options }: SceneOptions = {}) =>
    Scene.start({
      command,
      lease: 60,
      ...options,
      async prepare(fake) {
        putEarly(fake);
        await prepare?.(fake);
      },
    });

  interface Late {
    readonly breaks: (fake: FakeApiServer) => void | Promise<void>;
    readonly mends: (fake: FakeApiServer) => void | Promise<void>;
    readonly words: readonly string[];
  }
  const LATE: Readonly<Record<string, Late>> = {
    "is not there": {
      breaks: (fake) => fake.stop(),
      mends: (fake) => fake.startAgain(),
      words: ["refuses the connection"],
    },
    "never answers": {
      breaks: (fake) => fake.break(hang, "list"),
      mends(fake) {
        fake.mend();
        fake.dropAll();
      },
      words: [],
    },
    "has not been told what the service may do": {
      breaks(fake) {
        fake.forbidden = new Set([TOKEN]);
      },
      mends(fake) {
        fake.forbidden = new Set();
      },
      words: ["forbids list on endpointslices.discovery.k8s.io", "ClusterRole"],
    },
    "does not know the token": {
      breaks(fake) {
        fake.allowed = new Set();
      },
      mends(fake) {
        fake.allowed = new Set([TOKEN]);
      },
      words: ["does not accept the token", "401"],
    },
    "has a long reason": {
      breaks: (fake) =>
        fake.break(refuse(500, "X", { message: `<p>\n${"x".repeat(9000)}` }), "list"),
      mends: (fake) => fake.mend(),
      words: ["failed at list with 500"],
    },
  };
  for (const [what, { breaks, mends, words }] of Object.entries(LATE)) {
    test.concurrent(`answers 503 with the reason while the API server ${what}, and 200 from then on, whatever comes`, async () => {
      await using scene = await start({ prepare: breaks });
      const { service, fake } = scene;
      if (words.length > 0) await service.says(/WARN.*the slices can't be read yet; trying again/);
      await expectUnready(service, ...words);
      // Some more tries.
      await Bun.sleep(2000);
      await expectUnready(service, ...words);
      await mends(fake);
      await expectReadySoon(service);
      await service.says(/INFO.*the slices are read/);
      fake.mend();
      await breaks(fake);
      fake.dropAll();
      await Bun.sleep(2000);
      expect(await answerOf(service.url, "/healthz")).toEqual([200, ""]);
      expect((await answerOf(service.url, "/pools"))[0]).toBe(200);
      expect(await service.stop()).toEqual({ status: 0, signal: null });
      expectNoStackTrace(service.stderr);
    });
  }

  test.concurrent("says so where the CA has not signed the API server's certificate, sends it no token, and tries again", async () => {
    const pair = await certificates();
    const ca = Buffer.from(await Bun.file(pair.otherCert).bytes()).toString("base64");
    await using scene = await start({ cluster: { "certificate-authority-data": ca } });
    const { service, fake } = scene;
    await service.says(/WARN.*shows a certificate that the CA of kubeconfig .* has not signed/);
    await expectUnready(service, "certificate", "has not signed");
    expect(fake.requests).toEqual([]);
    await fake.stop();
    const { port } = new URL(fake.url);
    const certified = { ...pair, chain: pair.otherCert, key: pair.otherKey };
    using other = await FakeApiServer.start({ certificates: certified, port: Number(port) });
    putEarly(other);
    await expectReadySoon(service);
  });

  test.concurrent("shows the kubeconfig's client certificate, and says so where that has expired", async () => {
    const { valid, expired } = await clientCertificates();
    await using good = await start({ isStrict: true, user: valid });
    await register(good.url, poolNamed("early"));
    await expectReadySoon(good.service);
    for (const isStrict of [true, false]) {
      await using scene = await start({ isStrict, user: expired });
      await scene.service.says(/WARN.*fault=denied.*the client certificate expired on .*renew/);
      const [status, reason] = await answerOf(scene.url, "/pools");
      expect(status).toBe(503);
      expect(reason).toContain("the client certificate expired on");
    }
  });

  test.concurrent("ends with status 1 where there is no API server, or one that would not be verified", async () => {
    using folder = temporaryFolder();
    const args = ["--listen=127.0.0.1:0", "--pool-discovery=karmada"];
    const missing = join(folder.path, "missing");
    const home = { HOME: folder.path };
    await expectStartupError(command, { args, env: home }, "KUBECONFIG", "service account");
    const env = { ...home, KUBECONFIG: missing };
    await expectStartupError(command, { args, env }, missing);
    const insecure = join(folder.path, "insecure");
    const cluster = { server: "https://127.0.0.1:1", "insecure-skip-tls-verify": true };
    await Bun.write(insecure, kubeconfigText({ cluster }));
    const skipping = { ...home, KUBECONFIG: insecure };
    await expectStartupError(command, { args, env: skipping }, "insecure-skip-tls-verify");
  });

  const HANGING: Readonly<Record<string, SceneOptions["prepare"]>> = {
    "while a list hangs": (fake) => fake.break(hang, "list"),
    "while a watch hangs": (fake) => fake.break(hang, "watch"),
    "while a watch is open": () => {},
    "between two tries": (fake) => fake.break(refuse(500, "X"), "list"),
    "while nothing is there": (fake) => fake.stop(),
  };
  for (const [when, prepare] of Object.entries(HANGING)) {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      test.concurrent(`ends with status 0 at once on ${signal} ${when}`, async () => {
        await using scene = await start(prepare === undefined ? {} : { prepare });
        const { service, fake } = scene;
        if (when.includes("list hangs"))
          await until("a list", () => fake.of("list").length > 0 || undefined);
        else if (when.includes("watch"))
          await until("a watch", () => fake.of("watch").length > 0 || undefined);
        else await service.says(/trying again/);
        const atMs = performance.now();
        service.kill(signal);
        expect(await service.ended()).toEqual({ status: 0, signal: null });
        expect(performance.now() - atMs).toBeLessThan(PROMPT_MS);
        expect(service.lines.at(-1)).toContain("stopped");
        expectNoStackTrace(service.stderr);
      });
    }
  }

  test.concurrent("never asks a proxy of the environment", async () => {
    using proxy = await RecordingProxy.start();
    const variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    const env = Object.fromEntries(
      variables.flatMap((name) => [
        [name, proxy.url],
        [name.toLowerCase(), proxy.url],
      ]),
    );
    await using scene = await start({ env });
    await register(scene.url, poolNamed("early"));
    await expectReadySoon(scene.service);
    await until("a watch", () => scene.fake.watching > 0 || undefined);
    expect(proxy.asked).toEqual([]);
  });
}

/** A token that Kubernetes rotates, as it does with a pod's own. */
export function rotationTests(command: readonly string[]): void {
  test.concurrent(
    "a token that rotates on disk is in use within 95 s, and nobody notices",
    async () => {
      const pair = await certificates();
      using folder = temporaryFolder();
      using fake = await FakeApiServer.start({ certificates: pair });
      fake.allowed = new Set(["first", "second"]);
      putEarly(fake);
      const tokenFile = join(folder.path, "token");
      await Bun.write(tokenFile, "first\n");
      await using service = await startImporting({
        command,
        lease: 300,
        user: { tokenFile },
        cluster: clusterOf(fake, pair.root),
      });
      await registerSoon(service.url, poolNamed("early"));
      await using watch = new Watch(service.url, 500);
      await watch.for("the pool", ({ list }) => lists(list, "early"));
      await Bun.write(tokenFile, "second\n");
      const usersOf = () => fake.requests.map(({ headers }) => headers.get("authorization"));
      await until(
        "the new token",
        () => usersOf().includes("Bearer second") || undefined,
        ROTATION_MS,
      );
      fake.allowed = new Set(["second"]);
      await until("a watch", () => fake.watching === 1 || undefined);
      fake.put(objectOf(frontendsOf("mcs", "early", { endpoints: [] })));
      await watch.for("a change", ({ list }) => list?.pools[0]?.frontends.length === 0);
      for (const { list, status } of watch.samples) {
        if (status === 200) expect(lists(list, "early") || !list?.complete).toBe(true);
      }
      expect(usersOf()).toEqual(["Bearer first", "Bearer first", "Bearer second"]);
      expect(service.stderr).not.toMatch(/WARN(?!.*not running)/);
    },
    DEADLINE_MS,
  );
}
