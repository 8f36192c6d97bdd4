import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findApiServer } from "../../src/kubernetes/api-server.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { dataOf, type KubeconfigParts, kubeconfigText } from "../support/kubeconfig.ts";

let folder = "";
const folders: string[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kubeconfig-"));
  folders.push(folder);
});
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true });
});

const at = (name: string) => join(folder, name);
const server = "https://10.0.0.1:6443";

/** What is found where `KUBECONFIG` names one file with these parts. */
function found(parts: KubeconfigParts) {
  writeFileSync(at("config"), kubeconfigText(parts));
  return findApiServer({ KUBECONFIG: at("config") }, at("none"));
}

/** The message with which a search ends. */
function refused(search: () => unknown): string {
  try {
    search();
  } catch (error) {
    if (error instanceof ServiceError && error.code === "startup") {
      expect(error.message).not.toMatch(/\p{Cc}/u);
      return error.message;
    }
    throw error;
  }
  throw new Error("it was not refused");
}

describe("the API server is", () => {
  const writeServiceAccount = () => {
    mkdirSync(at("account"));
    writeFileSync(at("account/token"), "token");
    return { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };
  };
  const writeHome = () => {
    mkdirSync(at(".kube"));
    writeFileSync(at(".kube/config"), kubeconfigText({ cluster: { server: "https://home" } }));
    return { HOME: folder };
  };

  test("the one of KUBECONFIG, before the pod's own", () => {
    writeFileSync(at("config"), kubeconfigText({ cluster: { server } }));
    const env = { ...writeServiceAccount(), ...writeHome(), KUBECONFIG: at("config") };
    expect(findApiServer(env, at("account"))).toMatchObject({
      url: server,
      foundIn: `kubeconfig ${at("config")}, context 'test'`,
    });
  });

  test("the pod's own, with the token that Kubernetes rotates, before ~/.kube/config", () => {
    const env = { ...writeServiceAccount(), ...writeHome(), KUBECONFIG: "" };
    expect(findApiServer(env, at("account"))).toMatchObject({
      url: "https://10.96.0.1:443",
      ca: { file: at("account/ca.crt") },
      user: { tokenFile: at("account/token"), token: undefined },
    });
    const ipv6 = { ...env, KUBERNETES_SERVICE_HOST: "fd00::1" };
    expect(findApiServer(ipv6, at("account")).url).toBe("https://[fd00::1]:443");
  });

  test("the one of ~/.kube/config, where the pod has no service account", () => {
    const env = writeHome();
    expect(findApiServer(env, at("none")).url).toBe("https://home");
    const pod = { ...env, KUBERNETES_SERVICE_HOST: "10.96.0.1" };
    expect(findApiServer(pod, at("none")).url).toBe("https://home");
  });

  test("none, which the message says how to mend", () => {
    const message = refused(() => findApiServer({ HOME: folder }, at("none")));
    expect(message).toContain("set KUBECONFIG");
    expect(message).toContain(at(".kube/config"));
    expect(message).toContain(at("none/token"));
  });

  test("not looked for elsewhere where KUBECONFIG names what is not there", () => {
    const env = { ...writeServiceAccount(), ...writeHome(), KUBECONFIG: at("absent") };
    const message = refused(() => findApiServer(env, at("account")));
    expect(message).toStartWith("KUBECONFIG names '");
    expect(message).toContain("absent");
  });
});

describe("a list of kubeconfigs", () => {
  const entry = (name: string, url: string) => ({ name, cluster: { server: url } });
  const write = (name: string, document: object) =>
    writeFileSync(at(name), JSON.stringify(document));
  const listed = (...names: string[]) => ({ KUBECONFIG: names.map(at).join(":") });

  test("is joined, and of what several say the first counts", () => {
    write("one", { clusters: [entry("a", "https://first")], users: [{ name: "u", user: {} }] });
    write("two", {
      "current-context": "c",
      clusters: [entry("a", "https://second")],
      users: [{ name: "u", user: { token: "second" } }],
      contexts: [{ name: "c", context: { cluster: "a", user: "u" } }],
    });
    write("three", {
      "current-context": "d",
      contexts: [{ name: "c", context: { cluster: "b", user: "u" } }],
    });
    const joined = findApiServer(listed("one", "absent", "two", "three"), at("none"));
    expect(joined.url).toBe("https://first");
    expect(joined.user.token).toBeUndefined();
    expect(joined.foundIn).toBe(
      `kubeconfig ${listed("one", "two", "three").KUBECONFIG}, context 'c'`,
    );
  });

  test("keeps each file's own folder for paths that are relative", () => {
    mkdirSync(at("sub"));
    write("sub/one", {
      clusters: [{ name: "a", cluster: { server, "certificate-authority": "pki/ca.crt" } }],
    });
    write("two", {
      "current-context": "c",
      users: [{ name: "u", user: { tokenFile: "token" } }],
      contexts: [{ name: "c", context: { cluster: "a", user: "u" } }],
    });
    const joined = findApiServer(listed("sub/one", "two"), at("none"));
    expect(joined.ca).toEqual({ file: at("sub/pki/ca.crt") });
    expect(joined.user.tokenFile).toBe(at("token"));
  });
});

describe("of a kubeconfig", () => {
  test("YAML is read as kubectl writes it", () => {
    writeFileSync(
      at("config"),
      `apiVersion: v1
kind: Config
current-context: karmada-apiserver
preferences: {}
clusters:
- cluster:
    certificate-authority-data: ${dataOf("PEM")}
    server: https://karmada.example:5443
  name: karmada
contexts:
- context:
    cluster: karmada
    user: reader
  name: karmada-apiserver
users:
- name: reader
  user:
    client-certificate: reader.crt
    client-key: /keys/reader.key
`,
    );
    expect(findApiServer({ KUBECONFIG: at("config") })).toEqual({
      foundIn: `kubeconfig ${at("config")}, context 'karmada-apiserver'`,
      url: "https://karmada.example:5443",
      ca: { text: "PEM" },
      serverName: undefined,
      proxyUrl: undefined,
      user: {
        certificate: { cert: { file: at("reader.crt") }, key: { file: "/keys/reader.key" } },
        tokenFile: undefined,
        token: undefined,
        basic: undefined,
        exec: undefined,
        impersonates: undefined,
      },
    });
  });

  test("data wins over a file", () => {
    const parts = found({
      cluster: {
        server,
        "certificate-authority": "ca.crt",
        "certificate-authority-data": dataOf("CA"),
      },
      user: {
        "client-certificate": "x.crt",
        "client-certificate-data": dataOf("CERT"),
        "client-key": "x.key",
        "client-key-data": dataOf("KEY"),
      },
    });
    expect(parts.ca).toEqual({ text: "CA" });
    expect(parts.user.certificate).toEqual({ cert: { text: "CERT" }, key: { text: "KEY" } });
  });

  test("the server may have a path, an IPv6 address, or no scheme", () => {
    const urls = {
      "https://rancher.example/k8s/clusters/c-1/": "https://rancher.example/k8s/clusters/c-1",
      "https://[fd00::1]:6443": "https://[fd00::1]:6443",
      "10.0.0.1:6443": "https://10.0.0.1:6443",
      "http://localhost:8001": "http://localhost:8001",
      "http://127.0.0.1:8001/": "http://127.0.0.1:8001",
      "http://[::1]:8001": "http://[::1]:8001",
    };
    for (const [given, url] of Object.entries(urls)) {
      expect(found({ cluster: { server: given } }).url).toBe(url);
    }
  });

  test("a proxy and a name for the certificate are taken, but no proxy to this machine", () => {
    const cluster = { "proxy-url": "http://proxy:3128", "tls-server-name": "kube" };
    expect(found({ cluster: { server, ...cluster } })).toMatchObject({
      proxyUrl: "http://proxy:3128/",
      serverName: "kube",
    });
    for (const loopback of ["https://localhost:1", "https://127.0.0.2:1", "https://[::1]:1"]) {
      expect(found({ cluster: { server: loopback, ...cluster } }).proxyUrl).toBeUndefined();
    }
  });

  test("an exec plugin is relative to the file where it has a slash, and is told for what", () => {
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "bin/login",
      args: ["--cluster", "a"],
      env: [{ name: "ROLE", value: "reader" }],
      interactiveMode: "IfAvailable",
      provideClusterInfo: true,
    };
    const cluster = { server, "certificate-authority-data": dataOf("CA") };
    const plugin = found({ cluster, user: { exec } }).user.exec;
    expect(plugin?.command).toEqual([at("bin/login"), "--cluster", "a"]);
    expect(plugin?.env.ROLE).toBe("reader");
    expect(JSON.parse(plugin?.env.KUBERNETES_EXEC_INFO ?? "")).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      spec: { interactive: false, cluster },
    });
    const onPath = { ...exec, command: "aws", env: null, provideClusterInfo: false };
    const other = found({ cluster, user: { exec: onPath } }).user.exec;
    expect(other?.command[0]).toBe("aws");
    expect(JSON.parse(other?.env.KUBERNETES_EXEC_INFO ?? "").spec).toEqual({ interactive: false });
  });
});

describe("a kubeconfig is refused", () => {
  const cases: readonly (readonly [what: string, parts: KubeconfigParts, words: string[]])[] = [
    [
      "that would not verify the certificate",
      { cluster: { server, "insecure-skip-tls-verify": true } },
      ["insecure-skip-tls-verify", "always verified", "certificate-authority-data"],
    ],
    [
      "that reads another machine over plain http",
      { cluster: { server: "http://10.0.0.1:8080" } },
      ["http://10.0.0.1:8080", "plain http"],
    ],
    ["whose server is no URL", { cluster: { server: "https://a b" } }, ["'https://a b'"]],
    ["that has no server", { cluster: { "tls-server-name": "x" } }, ["server is missing"]],
    [
      "whose proxy is none that works",
      { cluster: { server, "proxy-url": "socks5://proxy:1080" } },
      ["proxy-url"],
    ],
    [
      "with an auth-provider, which kubectl has dropped",
      { cluster: { server }, user: { "auth-provider": { name: "oidc" } } },
      ["auth-provider", "exec"],
    ],
    [
      "that acts as groups",
      { cluster: { server }, user: { as: "a", "as-groups": ["g"] } },
      ["as-groups"],
    ],
    [
      "with a certificate that has no key",
      { cluster: { server }, user: { "client-certificate": "x" } },
      ["without its key"],
    ],
    [
      "with an exec plugin that asks questions",
      {
        cluster: { server },
        user: {
          exec: {
            apiVersion: "client.authentication.k8s.io/v1",
            command: "login",
            interactiveMode: "Always",
          },
        },
      },
      ["terminal"],
    ],
    [
      "with an exec plugin of a version that is gone",
      {
        cluster: { server },
        user: { exec: { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "login" } },
      },
      ["apiVersion", "client.authentication.k8s.io/v1"],
    ],
  ];
  for (const [what, parts, words] of cases) {
    test(what, () => {
      const message = refused(() => found(parts));
      expect(message).toStartWith(`kubeconfig ${at("config")}`);
      for (const word of words) expect(message).toContain(word);
    });
  }

  const exec = (parts: Readonly<Record<string, unknown>>) => ({
    cluster: { server },
    user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "login", ...parts } },
  });

  test("with something that is not of its type, which it names", () => {
    const wrong: readonly (readonly [KubeconfigParts, string])[] = [
      [{ cluster: { server: 1 } }, "clusters[0].cluster.server is no text"],
      [{ cluster: { server, "proxy-url": ["a"] } }, "clusters[0].cluster.proxy-url is no text"],
      // As YAML has it without quotes.
      [{ cluster: { server }, user: { token: 12_345 } }, "users[0].user.token is no text"],
      [{ cluster: { server }, user: { username: {} } }, "users[0].user.username is no text"],
      [exec({ args: ["--port", 1] }), "has args that are not all text"],
      [exec({ env: [{ name: "A", value: 1 }] }), "has an env whose names and values"],
    ];
    for (const [parts, words] of wrong) expect(refused(() => found(parts))).toContain(words);
    for (const [text, words] of [
      ["clusters: {}", "clusters is no list"],
      ["users: [{name: 1}]", "users[0].name is no text"],
      ["contexts: [{name: a, context: b}]", "contexts[0].context is no mapping"],
      ["current-context: 1", "current-context is no text"],
    ] as const) {
      writeFileSync(at("config"), text);
      expect(refused(() => findApiServer({ KUBECONFIG: at("config") }))).toContain(words);
    }
  });

  test("with an exec plugin that is to be told of a CA that can't be read", () => {
    const parts = exec({ provideClusterInfo: true });
    const cluster = { server, "certificate-authority": "none.crt" };
    const message = refused(() => found({ ...parts, cluster }));
    expect(message).toContain("the exec plugin of user 'test-user' is to be told the cluster's CA");
    expect(message).toContain(at("none.crt"));
  });

  test("that is no YAML, no mapping or no file", () => {
    for (const text of ["a: [", "- a", "users: [null]", "clusters: [1]"]) {
      writeFileSync(at("config"), text);
      const message = refused(() => findApiServer({ KUBECONFIG: at("config") }));
      expect(message).toStartWith(`kubeconfig ${at("config")} can't be read: `);
    }
    mkdirSync(at("folder"));
    expect(refused(() => findApiServer({ KUBECONFIG: at("folder") }))).toContain("EISDIR");
  });

  test("whose names lead nowhere", () => {
    const whole = {
      "current-context": "c",
      clusters: [{ name: "a", cluster: { server } }],
      users: [{ name: "u", user: {} }],
      contexts: [{ name: "c", context: { cluster: "a", user: "u" } }],
    };
    const cases = [
      [{ "current-context": "" }, "no current-context"],
      [{ "current-context": "d" }, "no context 'd'"],
      [{ clusters: [] }, "no cluster 'a'"],
      [{ users: [] }, "no user 'u'"],
    ] as const;
    for (const [part, words] of cases) {
      writeFileSync(at("config"), JSON.stringify({ ...whole, ...part }));
      expect(refused(() => findApiServer({ KUBECONFIG: at("config") }))).toContain(words);
    }
    writeFileSync(at("config"), JSON.stringify(whole));
    expect(findApiServer({ KUBECONFIG: at("config") }).url).toBe(server);
  });
});
