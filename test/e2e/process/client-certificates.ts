import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import {
  type Certificates,
  canMakeCertificates,
  makeCertificates,
} from "../../support/certificates.ts";
import { issueCertificate } from "../../support/issue-certificate.ts";
import { expectStartupError } from "../../support/outcomes.ts";
import { RawConnection } from "../../support/raw-http.ts";
import { postBytes, registration } from "../../support/relay.ts";
import { Service, temporaryFolder } from "../../support/service.ts";
import { until, within } from "../../support/until.ts";

interface Client {
  readonly cert: string;
  readonly key: string;
}

const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;
const GET = "GET /pools HTTP/1.1\r\nHost: x\r\n\r\n";
const POST = postBytes(JSON.stringify(registration()));

export function clientCertificateTests(command: readonly string[]): void {
  if (!canMakeCertificates("the tests of client certificates")) return;
  const folder = temporaryFolder();
  afterAll(() => folder[Symbol.dispose]());
  let ours: Certificates;
  let theirs: Certificates;
  let client: Client;
  let strangers: Readonly<Record<string, Client | undefined>>;
  beforeAll(async () => {
    const [here, there] = ["ours", "theirs"].map((name) => join(folder.path, name)) as [
      string,
      string,
    ];
    for (const path of [here, there]) mkdirSync(path);
    [ours, theirs] = await Promise.all([makeCertificates(here), makeCertificates(there)]);
    client = await issueCertificate(here, { subject: "/CN=relay" });
    strangers = {
      "no certificate": undefined,
      "one that has expired": await issueCertificate(here, { subject: "/CN=late", days: -1 }),
      "one of another CA": await issueCertificate(there, { subject: "/CN=relay" }),
      "one that nobody has signed": { cert: ours.otherCert, key: ours.otherKey },
    };
  });

  const text = (path: string) => Bun.file(path).text();
  const args = (clientCa: string) => [
    ...["--tls-cert-path", ours.chain, "--tls-key-path", ours.key],
    ...["--tls-client-ca-path", clientCa],
  ];
  const optionsOf = async (
    who: Client | undefined,
    version?: (typeof VERSIONS)[number],
  ): Promise<ConnectionOptions> => ({
    ca: await text(ours.root),
    ...(who && { cert: await text(who.cert), key: await text(who.key) }),
    ...(version && { minVersion: version, maxVersion: version }),
  });
  /** The status of the answer to a request; undefined where there was none. */
  const ask = async (url: string, tls: ConnectionOptions, request: string | Uint8Array = GET) => {
    try {
      using connection = await RawConnection.open(url, tls);
      connection.send(request);
      return (await connection.response()).status;
    } catch {
      return undefined;
    }
  };

  test("a client with a certificate that the CA signed is served", async () => {
    await using service = await Service.start(command, { args: args(ours.root) });
    for (const version of VERSIONS) {
      const tls = await optionsOf(client, version);
      expect(await ask(service.url, tls)).toBe(200);
      expect(await ask(service.url, tls, POST)).toBe(200);
    }
  });

  test("every other client is refused, whatever it asks for, and nothing of it is heard", async () => {
    await using service = await Service.start(command, { args: args(ours.root) });
    for (const [what, stranger] of Object.entries(strangers)) {
      for (const version of VERSIONS) {
        const tls = await optionsOf(stranger, version);
        const label = `${what} over ${version}`;
        expect(await ask(service.url, tls, POST), label).toBeUndefined();
        expect(await ask(service.url, tls), label).toBeUndefined();
        const healthz = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        expect(await ask(service.url, tls, healthz), label).toBeUndefined();
      }
    }
    expect(service.stderr).not.toContain("pool added");
    expect(await ask(service.url, await optionsOf(client))).toBe(200);
  });

  test("a client of any CA in the file is served", async () => {
    const bundle = join(folder.path, "bundle.pem");
    await Bun.write(bundle, `# two of them\n${await text(theirs.root)}\n${await text(ours.root)}`);
    await using service = await Service.start(command, { args: args(bundle) });
    expect(await ask(service.url, await optionsOf(client))).toBe(200);
    expect(await ask(service.url, await optionsOf(strangers["one of another CA"]))).toBe(200);
    expect(await ask(service.url, await optionsOf(undefined))).toBeUndefined();
  });

  test("a CA that changes on disk decides within 10 s who is served, on open connections too", async () => {
    const ca = join(folder.path, "changing.pem");
    await Bun.write(ca, await text(ours.root));
    await using service = await Service.start(command, { args: args(ca) });
    const [before, after] = await Promise.all([
      optionsOf(client),
      optionsOf(strangers["one of another CA"]),
    ]);
    using open = await RawConnection.open(service.url, before);
    open.send(GET);
    expect((await open.response()).status).toBe(200);
    await Bun.write(ca, await text(theirs.root));
    const isServed = async () => ((await ask(service.url, after)) === 200 ? true : undefined);
    await until("the other CA", isServed, 10_000);
    expect(await ask(service.url, before)).toBeUndefined();
    open.send(GET);
    expect((await open.response()).headers.get("connection")).toBe("close");
    await within(5000, "the end of the connection", open.closed);
  });

  test("a session that is taken up again doesn't stand in for a certificate", async () => {
    await using service = await Service.start(command, { args: args(ours.root) });
    for (const version of ["-tls1_2", "-tls1_3"]) {
      const session = join(folder.path, `session${version}`);
      const openssl = async (...rest: string[]) => {
        const child = Bun.spawn(
          [
            ...[
              "openssl",
              "s_client",
              "-connect",
              `127.0.0.1:${service.port}`,
              version,
              "-ign_eof",
            ],
            ...rest,
          ],
          {
            stdin: Buffer.from("GET /pools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            stdout: "pipe",
            stderr: "ignore",
          },
        );
        return await new Response(child.stdout).text();
      };
      const first = await openssl("-cert", client.cert, "-key", client.key, "-sess_out", session);
      expect(first).toContain("200 OK");
      // Where it was given none, there is nothing to take up.
      if (!(await Bun.file(session).exists())) continue;
      expect(await openssl("-sess_in", session)).not.toContain("200 OK");
    }
  });

  test("a file of CAs that can't be used is a fault at the start", async () => {
    const at = (name: string) => join(folder.path, name);
    await Bun.write(at("empty.pem"), "");
    await Bun.write(at("half.pem"), (await text(ours.root)).slice(0, 200));
    await Bun.write(
      at("broken.pem"),
      `${await text(ours.root)}-----BEGIN CERTIFICATE-----\nAAAA\n`,
    );
    for (const path of [
      at("missing.pem"),
      folder.path,
      at("empty.pem"),
      at("half.pem"),
      at("broken.pem"),
      ours.key,
    ]) {
      await expectStartupError(command, { args: args(path) }, "--tls-client-ca-path", path);
    }
  });
}
