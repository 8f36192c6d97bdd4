import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { ApiError } from "../../src/kubernetes/slice-api.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { issueCertificate } from "../support/issue-certificate.ts";
import {
  KubeApiServer,
  kubernetesPrograms,
  READER_TOKEN,
  STRANGER_TOKEN,
} from "../support/kube-apiserver.ts";
import { endAll, temporaryFolder } from "../support/service.ts";
import { apiErrorOf, listed, openWith, sliceNamed, watched } from "../support/slice-client.ts";
import { until } from "../support/until.ts";
import { describeApiServer } from "./api-server-suite.ts";

setDefaultTimeout(60_000);

const programs = kubernetesPrograms();

if (programs !== undefined) {
  describeApiServer("kube-apiserver", async () => {
    const server = await KubeApiServer.start(programs);
    return {
      put: (slice) => server.put(slice),
      delete: (namespace, name) => server.delete(namespace, name),
      expireLists: () => server.compact(),
      kubeconfig: (user) => server.kubeconfig(user),
      readerToken: READER_TOKEN,
      strangerToken: STRANGER_TOKEN,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });

  describe("against kube-apiserver", () => {
    let server: KubeApiServer;
    beforeAll(async () => {
      server = await KubeApiServer.start(programs);
      await server.put(sliceNamed("a"));
    });
    afterAll(endAll);

    test("a client certificate says who the service is, and an expired one is named", async () => {
      const { cluster } = server;
      const user = async (subject: string, days: number) => {
        const { cert, key } = await issueCertificate(server.folder, { subject, days });
        return { "client-certificate": cert, "client-key": key };
      };
      const good = await user("/CN=reader", 2);
      expect(await listed(await openWith({ cluster, user: good }))).toEqual(["a"]);
      const expired = await openWith({ cluster, user: await user("/CN=reader/OU=expired", -1) });
      const error = await apiErrorOf(() => listed(expired));
      expect(error.fault).toBe("denied");
      expect(error.message).toContain("the client certificate expired on ");
    });

    test("a service account's token that is void is refused, and the one after it is used", async () => {
      using folder = temporaryFolder();
      const tokenFile = join(folder.path, "token");
      await Bun.write(tokenFile, await server.newServiceAccountToken("relay"));
      const clock = new FakeClock();
      const api = await openWith({ cluster: server.cluster, user: { tokenFile } }, { clock });
      expect(await listed(api)).toEqual(["a"]);
      const next = await server.newServiceAccountToken("relay");
      const refused = await until("the token to be void", async () => {
        try {
          await listed(api);
          return undefined;
        } catch (error) {
          return error;
        }
      });
      expect(refused).toMatchObject({ fault: "denied" });
      await Bun.write(tokenFile, next);
      expect(await listed(api)).toEqual(["a"]);
    });

    test("RBAC that comes later is enough, and without it nothing is read", async () => {
      const api = await openWith({ cluster: server.cluster, user: { token: READER_TOKEN } });
      await server.revoke();
      await until("what was granted to be taken back", async () => {
        const outcome = await listed(api).catch((error) => error);
        return outcome instanceof ApiError && outcome.fault === "denied" ? true : undefined;
      });
      await server.grant();
      await until("it to be granted", async () => {
        const outcome = await listed(api).catch((error) => error);
        return Array.isArray(outcome) ? true : undefined;
      });
    });

    test("a restart breaks the watch, and a version from before etcd was compacted is gone", async () => {
      const api = await openWith({ cluster: server.cluster, user: { token: READER_TOKEN } });
      const { resourceVersion } = await api.list(
        { limit: 500, continueToken: undefined },
        new AbortController().signal,
      );
      const broken = apiErrorOf(() => watched(api, resourceVersion));
      await server.stop();
      expect((await broken).fault).toBe("error");
      expect((await apiErrorOf(() => listed(api))).message).toContain("refuses the connection");
      await server.startAgain();
      expect(await listed(api)).toEqual(["a"]);
      await server.put(sliceNamed("b"));
      await server.compact();
      await server.stop();
      await server.startAgain();
      expect((await apiErrorOf(() => watched(api, resourceVersion))).fault).toBe("expired");
      expect(await listed(api)).toEqual(["a", "b"]);
    });
  });
}
