import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSliceApi } from "../../src/kubernetes/client.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import {
  type Certificates,
  canMakeCertificates,
  makeCertificates,
} from "../support/certificates.ts";
import { FakeApiServer } from "../support/fake-api-server.ts";
import { issueCertificate } from "../support/issue-certificate.ts";
import { dataOf } from "../support/kubeconfig.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { RecordingProxy } from "../support/recording-proxy.ts";
import { freePort } from "../support/service.ts";
import { apiErrorOf, clusterOf, listed, openWith, sliceNamed } from "../support/slice-client.ts";
import { thrownBy } from "../support/thrown-by.ts";

const canRun = canMakeCertificates("the tests of the client over TLS");
let folder = "";
let certificates: Certificates;
let good: { readonly cert: string; readonly key: string };
let expired: { readonly cert: string; readonly key: string };
beforeAll(async () => {
  if (!canRun) return;
  folder = mkdtempSync(join(tmpdir(), "client-tls-"));
  certificates = await makeCertificates(folder);
  good = await issueCertificate(folder, { subject: "/CN=good" });
  expired = await issueCertificate(folder, { subject: "/CN=expired", days: -1 });
});
afterAll(() => {
  if (canRun) rmSync(folder, { recursive: true });
});

const text = (path: string) => readFileSync(path, "utf8");
const filesOf = ({ cert, key }: typeof good) => ({ "client-certificate": cert, "client-key": key });

async function start(options: { isStrict?: boolean; hostname?: string; path?: string } = {}) {
  const fake = await FakeApiServer.start({ certificates, ...options });
  fake.put(sliceNamed("a"));
  return fake;
}

/** Runs an action with changes to the environment of this process. */
async function withEnv(env: Record<string, string>, action: () => Promise<void>): Promise<void> {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  try {
    await action();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

describe.skipIf(!canRun)("the API server's certificate", () => {
  test("is verified against the kubeconfig's CA, given as data or as a file", async () => {
    using fake = await start();
    expect(await listed(await openWith({ cluster: clusterOf(fake, certificates.root) }))).toEqual([
      "a",
    ]);
    const cluster = { server: fake.url, "certificate-authority": certificates.root };
    expect(await listed(await openWith({ cluster }))).toEqual(["a"]);
  });

  test("of another CA is refused, and no environment changes that", async () => {
    using fake = await start();
    for (const cluster of [clusterOf(fake, certificates.otherCert), clusterOf(fake)]) {
      const api = await openWith({ cluster });
      await withEnv({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }, async () => {
        const error = await apiErrorOf(() => listed(api));
        expect(error.fault).toBe("error");
        expect(error.message).toContain("that the CA of kubeconfig");
        expect(error.message).toContain("certificate-authority-data");
      });
    }
    expect(fake.requests).toEqual([]);
  });

  test("is verified against the pod's CA", async () => {
    using fake = await start();
    const { port } = new URL(fake.url);
    const account = mkdtempSync(join(folder, "account-"));
    await Bun.write(join(account, "token"), "token\n");
    await Bun.write(join(account, "ca.crt"), text(certificates.root));
    const api = await openSliceApi({
      labelSelector: "x",
      env: { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: port },
      clock: systemClock,
      log: recordedLog().log,
      serviceAccountFolder: account,
    });
    expect(await listed(api)).toEqual(["a"]);
    expect(fake.requests[0]?.headers.get("authorization")).toBe("Bearer token");
  });

  test("that has expired is refused with words that say so", async () => {
    const server = await issueCertificate(folder, {
      subject: "/CN=old-server",
      days: -1,
    });
    using fake = await FakeApiServer.start({
      certificates: { ...certificates, chain: server.cert, key: server.key },
    });
    const api = await openWith({ cluster: clusterOf(fake, certificates.root) });
    const error = await apiErrorOf(() => listed(api));
    expect(error.message).toContain("certificate that has expired");
  });

  test("has to hold the name, which tls-server-name may say", async () => {
    using fake = await start();
    const cluster = clusterOf(fake, certificates.root);
    const wrong = await openWith({ cluster: { ...cluster, "tls-server-name": "example.org" } });
    const error = await apiErrorOf(() => listed(wrong));
    expect(error.message).toContain("does not hold the name example.org");
    expect(error.message).toContain("tls-server-name");
    const right = await openWith({ cluster: { ...cluster, "tls-server-name": "localhost" } });
    expect(await listed(right)).toEqual(["a"]);
  });
});

describe.skipIf(!canRun)("a client certificate", () => {
  test("is sent, from a file or from data", async () => {
    using fake = await start();
    fake.allowed = new Set(["good"]);
    const data = {
      "client-certificate-data": dataOf(text(good.cert)),
      "client-key-data": dataOf(text(good.key)),
    };
    for (const user of [filesOf(good), data]) {
      const api = await openWith({ cluster: clusterOf(fake, certificates.root), user });
      expect(await listed(api)).toEqual(["a"]);
      expect(fake.requests.at(-1)?.certificateName).toBe("good");
    }
  });

  test("that has expired is named, whether the handshake refuses it or the API server", async () => {
    for (const isStrict of [true, false]) {
      using fake = await start({ isStrict });
      fake.allowed = new Set(["good"]);
      const user = filesOf(expired);
      const api = await openWith({ cluster: clusterOf(fake, certificates.root), user });
      const error = await apiErrorOf(() => listed(api));
      expect(error.fault).toBe("denied");
      expect(error.message).toContain("the client certificate expired on ");
      expect(error.message).toContain(expired.cert);
    }
  });

  test("that the handshake misses, or doesn't know, shows in the message", async () => {
    using fake = await start({ isStrict: true });
    const stranger = {
      "client-certificate": certificates.otherCert,
      "client-key": certificates.otherKey,
    };
    const cases = [
      [{}, "no credentials at all"],
      [stranger, certificates.otherCert],
    ] as const;
    for (const [user, words] of cases) {
      const api = await openWith({ cluster: clusterOf(fake, certificates.root), user });
      const error = await apiErrorOf(() => listed(api));
      expect(error.message).toContain("client's certificate");
      expect(error.message).toContain(words);
    }
    const api = await openWith({
      cluster: clusterOf(fake, certificates.root),
      user: filesOf(good),
    });
    expect(await listed(api)).toEqual(["a"]);
  });

  test("and what else can't be used is refused at the start", async () => {
    using fake = await start();
    const cluster = clusterOf(fake, certificates.root);
    const cases = [
      [{ cluster: { server: fake.url, "certificate-authority": "/none" } }, "/none: ENOENT"],
      [{ cluster: { server: fake.url, "certificate-authority": good.key } }, "no PEM certificate"],
      [{ cluster, user: filesOf({ cert: good.cert, key: "/none" }) }, "/none: ENOENT"],
      [{ cluster, user: filesOf({ cert: good.key, key: good.key }) }, "no PEM certificate"],
      [{ cluster, user: filesOf({ cert: good.cert, key: expired.key }) }, "is not the key of"],
      [{ cluster, user: { tokenFile: "/none" } }, "/none: ENOENT"],
      [{ cluster, user: { token: "two words" } }, "no bearer token"],
    ] as const;
    for (const [parts, words] of cases) {
      const error = await thrownBy(() => openWith(parts));
      expect(error).toMatchObject({ code: "startup" });
      expect(error.message).toStartWith("kubeconfig ");
      expect(error.message).toContain(words);
      expect(error.message).not.toMatch(/\p{Cc}/u);
    }
  });
});

describe.skipIf(!canRun)("an API server is reached", () => {
  test("by an IPv6 address", async () => {
    let fake: FakeApiServer;
    try {
      fake = await start({ hostname: "::1" });
    } catch {
      console.log("skipped: this machine has no IPv6");
      return;
    }
    using started = fake;
    expect(started.url).toStartWith("https://[::1]:");
    const api = await openWith({ cluster: clusterOf(started, certificates.root) });
    expect(await listed(api)).toEqual(["a"]);
  });

  test("under a path", async () => {
    using fake = await start({ path: "/k8s/clusters/c-1" });
    const api = await openWith({ cluster: clusterOf(fake, certificates.root) });
    expect(await listed(api)).toEqual(["a"]);
    expect(fake.requests.map(({ path }) => path)).toEqual([
      "/k8s/clusters/c-1/apis/discovery.k8s.io/v1/endpointslices",
    ]);
  });

  test("over plain http on this machine, as kubectl proxy serves it", async () => {
    using fake = await FakeApiServer.start();
    fake.put(sliceNamed("a"));
    expect(await listed(await openWith({ cluster: { server: fake.url } }))).toEqual(["a"]);
  });

  test("never through a proxy of the environment", async () => {
    using proxy = await RecordingProxy.start();
    using fake = await start();
    using plain = await FakeApiServer.start();
    const env = Object.fromEntries(
      ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"].map((name) => [
        name,
        proxy.url,
      ]),
    );
    await withEnv({ ...env, NO_PROXY: "", no_proxy: "" }, async () => {
      // So the proxy would be used.
      await fetch("http://example.invalid/");
      expect(proxy.asked).toEqual(["http://example.invalid/"]);
      await listed(await openWith({ cluster: clusterOf(fake, certificates.root) }));
      await listed(await openWith({ cluster: { server: plain.url } }));
    });
    expect(proxy.asked).toHaveLength(1);
    expect(fake.requests).toHaveLength(1);
    expect(plain.requests).toHaveLength(1);
  });

  test("on this machine never through a proxy of the kubeconfig", async () => {
    using proxy = await RecordingProxy.start();
    using fake = await start();
    const cluster = { ...clusterOf(fake, certificates.root), "proxy-url": proxy.url };
    expect(await listed(await openWith({ cluster }))).toEqual(["a"]);
    expect(proxy.asked).toEqual([]);
  });

  test("on another one through the proxy of the kubeconfig, whatever NO_PROXY says", async () => {
    using proxy = await RecordingProxy.start();
    // A name that is this machine's, but doesn't look like it.
    using fake = await start({ hostname: "0.0.0.0" });
    const { port } = new URL(fake.url);
    const cluster = {
      ...clusterOf(fake, certificates.root),
      server: `https://0.0.0.0:${port}`,
      "proxy-url": proxy.url,
      "tls-server-name": "localhost",
    };
    fake.allowed = new Set(["good"]);
    await withEnv({ NO_PROXY: "*" }, async () => {
      const api = await openWith({ cluster, user: filesOf(good) });
      expect(await listed(api)).toEqual(["a"]);
      const wrong = {
        ...cluster,
        "certificate-authority-data": dataOf(text(certificates.otherCert)),
      };
      const error = await apiErrorOf(async () => listed(await openWith({ cluster: wrong })));
      expect(error.message).toContain("has not signed");
    });
    expect(proxy.asked[0]).toBe(`0.0.0.0:${port}`);
    const dead = { ...cluster, "proxy-url": `http://127.0.0.1:${await freePort()}` };
    const error = await apiErrorOf(async () => listed(await openWith({ cluster: dead })));
    expect(error.message).toContain("through the proxy of the kubeconfig");
    expect(error.message).toContain("refuses the connection");
  });

  test("or not, in words that say why", async () => {
    const ca = { "certificate-authority": certificates.root };
    const refused = await apiErrorOf(async () =>
      listed(
        await openWith({ cluster: { server: `https://127.0.0.1:${await freePort()}`, ...ca } }),
      ),
    );
    expect(refused.message).toContain("refuses the connection");
    const unknown = await apiErrorOf(async () =>
      listed(await openWith({ cluster: { server: "https://no-such-host.invalid", ...ca } })),
    );
    expect(unknown.message).toContain("DNS does not resolve the name");
    await using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const noTls = await apiErrorOf(async () =>
      listed(await openWith({ cluster: { server: `https://127.0.0.1:${plain.port}`, ...ca } })),
    );
    expect(noTls.message).toContain("speaks no TLS on this port");
  });
});
