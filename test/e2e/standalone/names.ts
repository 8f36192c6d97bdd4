import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compiledFile, type Emulator, startReplica, type Table } from "../../support/dynamodb.ts";
import { commandInRoot } from "../../support/empty-root.ts";
import { FakeApiServer } from "../../support/fake-api-server.ts";
import { answerOf, certificates, startImporting, TOKEN } from "../../support/imports.ts";
import { NameServer } from "../../support/name-server.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { type Service, temporaryFolder } from "../../support/service.ts";
import { clusterOf } from "../../support/slice-client.ts";
import { until } from "../../support/until.ts";
import { registerSoon } from "../../support/watch.ts";

/** A root with these files in /etc, and the command that runs the service in it. */
export function rootWith(etc: Readonly<Record<string, string>>) {
  const root = temporaryFolder();
  mkdirSync(join(root.path, "etc"));
  for (const [name, text] of Object.entries(etc)) writeFileSync(join(root.path, "etc", name), text);
  return {
    command: commandInRoot(root.path, compiledFile),
    [Symbol.dispose]: () => root[Symbol.dispose](),
  };
}

/**
 * Checks that a service finds its table by an endpoint of this name, and looks at the service then.
 */
export async function expectFinds(
  command: readonly string[],
  table: Table,
  host: string,
  look: (service: Service) => void = () => {},
): Promise<void> {
  const endpoint = table.endpoint.replace("127.0.0.1", host);
  await using service = await startReplica(table, { command, endpoint });
  await registerSoon(service.url, poolNamed("a"));
  await until("the table to be read", async () => {
    const [status] = await answerOf(service.url, "/pools");
    return status === 200 || undefined;
  });
  look(service);
}

/** What a container runtime puts into /etc is what counts; there is no nsswitch.conf. */
export function nameTests(emulator: () => Emulator): void {
  test.concurrent("by /etc/hosts", async () => {
    const table = await emulator().createTable();
    using root = rootWith({ hosts: "127.0.0.1 dynamodb.test\n" });
    await expectFinds(root.command, table, "dynamodb.test");
  });

  test.concurrent("by the name server of /etc/resolv.conf, within its search list", async () => {
    const table = await emulator().createTable();
    await using server = await NameServer.start("dynamodb.svc.cluster.local");
    using root = rootWith({
      "resolv.conf":
        `nameserver ${server.address}\nsearch pools.svc.cluster.local svc.cluster.local\n` +
        "options ndots:5\n",
    });
    await expectFinds(root.command, table, "dynamodb");
    expect(server.asked).toContain("dynamodb.pools.svc.cluster.local");
  });

  test.concurrent("for the API server, whose certificate has to hold the name", async () => {
    using root = rootWith({ hosts: "127.0.0.1 localhost kubernetes.test\n" });
    const pair = await certificates();
    using fake = await FakeApiServer.start({ certificates: pair });
    fake.allowed = new Set([TOKEN]);
    const at = (host: string) => {
      const cluster = clusterOf(fake, pair.root);
      const server = cluster.server.replace("127.0.0.1", host);
      return startImporting({ command: root.command, cluster: { ...cluster, server } });
    };
    await using service = await at("localhost");
    await until("the slices", async () => {
      const [status] = await answerOf(service.url, "/healthz");
      return status === 200 || undefined;
    });
    await using other = await at("kubernetes.test");
    await other.says(/WARN.*a certificate that does not hold the name/);
  });

  test.concurrent("or not, which is said and tried again", async () => {
    const table = await emulator().createTable();
    using root = rootWith({});
    const endpoint = table.endpoint.replace("127.0.0.1", "dynamodb.test");
    await using service = await startReplica(table, { command: root.command, endpoint });
    await service.says(/WARN.*trying again/);
    expect(await answerOf(service.url, "/healthz")).toEqual([503, ""]);
    expect(await service.stop()).toEqual({ status: 0, signal: null });
  });
}
