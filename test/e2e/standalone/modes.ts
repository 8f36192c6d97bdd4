import { describe, expect, test } from "bun:test";
import { type Emulator, startReplica, type Table } from "../../support/dynamodb.ts";
import {
  answerOf,
  frontendsOf,
  imported,
  MODES,
  type Mode,
  objectOf,
  relaysOf,
  startImporting,
  WEST,
} from "../../support/imports.ts";
import { issueCertificate } from "../../support/issue-certificate.ts";
import type { KubeApiServer } from "../../support/kube-apiserver.ts";
import { dataOf } from "../../support/kubeconfig.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { Service } from "../../support/service.ts";
import { podAt } from "../../support/slices.ts";
import { lists, Relays, Watch } from "../../support/watch.ts";

const STORES = ["memory", "dynamodb"] as const;

/** Whom a service can talk to, and whether that can be run here. */
export interface Peers {
  readonly hasDynamoDB: boolean;
  readonly emulator: () => Emulator;
  readonly hasApiServer: boolean;
  readonly apiServer: () => KubeApiServer;
}

/** Every mode with every store, each against the real peer or the nearest to it. */
export function modeTests(command: readonly string[], peers: Peers): void {
  for (const store of STORES) {
    describe.skipIf(store === "dynamodb" && !peers.hasDynamoDB)(`with the ${store} store`, () => {
      const table = async () =>
        store === "memory" ? undefined : await peers.emulator().createTable();

      test.concurrent("registrations mode lists pools", async () => {
        await using service = await startRegistering(command, await table());
        const pool = { ...poolNamed("a"), relay_identities: [] };
        expect(await listed(service, "a")).toEqual([pool]);
        expect(await service.stop()).toEqual({ status: 0, signal: null });
      });

      for (const mode of MODES) {
        test
          .skipIf(!peers.hasApiServer)
          .concurrent(
            `${mode} mode joins them with slices, over TLS to a private CA by a client certificate`,
            async () => {
              const name = `${mode}-${store}`;
              const server = peers.apiServer();
              await putSlices(server, mode, name);
              await using service = await startImporting({
                command,
                mode,
                table: await table(),
                cluster: server.cluster,
                user: await certifiedUser(server, name),
                args: ["--router-namespace", mode],
              });
              expect(await listed(service, name)).toEqual([
                {
                  ...poolNamed(name),
                  frontends: ["http://10.2.0.1:8000/"],
                  relay_identities: ["ip:10.1.0.1"],
                },
              ]);
              expect(await answerOf(service.url, "/routers")).toEqual([
                200,
                '{"routers":[{"replica":"aws-west/r-0","url":"http://10.3.0.1:8080/"}]}',
              ]);
              expect(service.stderr).not.toMatch(/ERROR|WARN(?!.*not running)/);
              expect(await service.stop()).toEqual({ status: 0, signal: null });
            },
          );
      }
    });
  }
}

/** Starts a service in registrations mode, with short leases. */
function startRegistering(command: readonly string[], table: Table | undefined): Promise<Service> {
  if (table !== undefined) return startReplica(table, { command });
  const args = ["--heartbeat-interval-secs", "1", "--lease-duration-secs", "3"];
  return Service.start(command, { args });
}

/** Registers a pool until a complete list has it, and returns what the list says of it. */
async function listed(service: Service, pool: string) {
  await using _ = new Relays(service.url, [poolNamed(pool)]);
  await using watch = new Watch(service.url, 100);
  const { list } = await watch.for("a complete list", ({ list }) =>
    Boolean(list?.complete && lists(list, pool)),
  );
  return list?.pools.filter(({ key }) => key.dgd_name === pool);
}

/** Writes what the mode's implementation imports of a pool and of a router. */
async function putSlices(server: KubeApiServer, mode: Mode, pool: string): Promise<void> {
  const router = imported(mode, WEST, "global-router", {
    namespace: mode,
    endpoints: [podAt("r-0", "10.3.0.1")],
    ports: [{ name: "http", port: 8080 }],
  });
  for (const slice of [relaysOf(mode, pool), frontendsOf(mode, pool), router]) {
    await server.put(objectOf(slice));
  }
}

/** The reader as a kubeconfig has it, by a certificate of its own; `unit` tells it from others. */
async function certifiedUser(server: KubeApiServer, unit: string) {
  const { cert, key } = await issueCertificate(server.folder, { subject: `/CN=reader/OU=${unit}` });
  const dataIn = async (path: string) => dataOf(await Bun.file(path).text());
  return { "client-certificate-data": await dataIn(cert), "client-key-data": await dataIn(key) };
}
