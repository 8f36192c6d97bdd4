import { expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { openSliceApi } from "../../src/kubernetes/client.ts";
import { ServiceError } from "../../src/runtime/errors.ts";
import { pairs } from "../fixtures/tls.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FUZZ_DEADLINE_MS, fuzz, mutatedBytes, mutatedValues } from "../support/fuzz.ts";
import { dataOf, kubeconfigText } from "../support/kubeconfig.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryFolder } from "../support/service.ts";

const { cert, key } = pairs.one;
const CLUSTER = {
  server: "https://10.0.0.1:6443/path",
  "certificate-authority-data": dataOf(cert),
  "tls-server-name": "kubernetes",
  "proxy-url": "http://10.0.0.2:3128",
};
const EXEC = {
  apiVersion: "client.authentication.k8s.io/v1",
  command: "./plugin",
  args: ["get-token"],
  env: [{ name: "A", value: "b" }],
  interactiveMode: "Never",
  provideClusterInfo: true,
};
const USERS = [
  { token: "abc" },
  { "client-certificate-data": dataOf(cert), "client-key-data": dataOf(key) },
  { username: "u", password: "p", as: "someone" },
  { exec: EXEC },
  { tokenFile: "token", "as-groups": undefined },
];
const TEXTS = USERS.map((user) => kubeconfigText({ cluster: CLUSTER, user }));
// A CA that is not there, which the plugin is to be told.
TEXTS.push(
  kubeconfigText({
    cluster: { server: CLUSTER.server, "certificate-authority": "none.crt" },
    user: { exec: EXEC },
  }),
);
const DOCUMENTS: readonly unknown[] = TEXTS.map((text) => JSON.parse(text));

const YAML = `apiVersion: v1
kind: Config
preferences: {}
clusters:
- name: &c west # a comment
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: ${dataOf(cert)}
contexts:
- name: west
  context: {cluster: *c, user: admin}
current-context: "west"
users:
- name: admin
  user:
    token: >-
      abc
`;

const anyKubeconfig = fc.oneof(
  mutatedBytes([...TEXTS, YAML, YAML]),
  mutatedValues(DOCUMENTS).map((value) => Buffer.from(JSON.stringify(value) ?? "")),
);

test(
  "a kubeconfig works, or is refused with a reason that names it",
  async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "config");
    await Bun.write(join(folder.path, "token"), "abc");
    await fuzz("kubeconfigs", anyKubeconfig, 500, async (bytes) => {
      await Bun.write(path, bytes);
      try {
        await openSliceApi({
          labelSelector: "x",
          env: { KUBECONFIG: path },
          clock: new FakeClock(),
          log: recordedLog().log,
        });
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        expect(error.code).toBe("startup");
        expect(error.message).toStartWith(`kubeconfig ${path}`);
        expect(error.message).not.toMatch(/\.[jt]s:\d|is not a function|is not an object/);
      }
    });
  },
  FUZZ_DEADLINE_MS,
);
