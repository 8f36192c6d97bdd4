import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canMakeCertificates, makeCertificates } from "../support/certificates.ts";
import { FakeApiServer } from "../support/fake-api-server.ts";
import { dataOf, kubeconfigText } from "../support/kubeconfig.ts";
import { describeApiServer } from "./api-server-suite.ts";

if (canMakeCertificates("the tests of the fake API server")) {
  describeApiServer("the fake API server", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fake-api-server-"));
    const certificates = await makeCertificates(folder);
    const fake = await FakeApiServer.start({ certificates });
    fake.allowed = new Set(["reader", "stranger"]);
    fake.forbidden = new Set(["stranger"]);
    const cluster = {
      server: fake.url,
      "certificate-authority-data": dataOf(readFileSync(certificates.root, "utf8")),
    };
    return {
      put: (slice) => fake.put(slice),
      delete: (namespace, name) => fake.delete(namespace, name),
      expireLists: () => fake.expire(),
      kubeconfig: (user) => kubeconfigText({ cluster, user }),
      readerToken: "reader",
      strangerToken: "stranger",
      async [Symbol.asyncDispose]() {
        fake[Symbol.dispose]();
        rmSync(folder, { recursive: true });
      },
    };
  });
}
