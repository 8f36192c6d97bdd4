import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import {
  type Certificates,
  canMakeCertificates,
  makeCertificates,
} from "../../support/certificates.ts";
import { expectStartupError } from "../../support/outcomes.ts";
import { RawConnection } from "../../support/raw-http.ts";
import { registration } from "../../support/relay.ts";
import { run, Service, temporaryFolder } from "../../support/service.ts";

export function tlsTests(command: readonly string[]): void {
  if (!canMakeCertificates("the tests of TLS")) return;
  const folder = temporaryFolder();
  let files: Certificates;
  beforeAll(async () => {
    files = await makeCertificates(folder.path);
  });
  afterAll(() => folder[Symbol.dispose]());

  const flags = (cert: string, key: string) => [
    ...["--listen", "127.0.0.1:0"],
    ...["--tls-cert-path", cert, "--tls-key-path", key],
  ];
  const file = async (name: string, content: string) => {
    const path = join(folder.path, name);
    await Bun.write(path, content);
    return path;
  };
  const text = (path: string) => Bun.file(path).text();
  const refused = (cert: string, key: string, ...words: string[]) =>
    expectStartupError(command, { args: flags(cert, key) }, ...words);

  test("HTTPS is served with the whole certificate chain", async () => {
    await using service = await Service.start(command, { args: flags(files.chain, files.key) });
    expect(service.url).toStartWith("https://127.0.0.1:");
    // The client knows the root alone; what is between the two has to come from the service.
    const tls = { ca: await text(files.root) };
    expect((await fetch(`${service.url}/healthz`, { tls })).status).toBe(200);
    const posted = await fetch(`${service.url}/pools`, {
      tls,
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(registration()),
    });
    expect(posted.status).toBe(200);
    const list = await fetch(`${service.url}/pools`, { tls });
    expect(await list.json()).toMatchObject({ pools: [{ model: "Qwen/Qwen3-0.6B" }] });
    const unknown = fetch(`${service.url}/healthz`, { tls: { ca: await text(files.otherCert) } });
    expect(await unknown.catch((error: unknown) => error)).toBeInstanceOf(Error);
    expect((await service.stop()).status).toBe(0);
  });

  test("a pair with an RSA key serves as well", async () => {
    const args = flags(files.otherCert, files.otherKey);
    await using service = await Service.start(command, { args });
    const tls = { ca: await text(files.otherCert) };
    expect((await fetch(`${service.url}/healthz`, { tls })).status).toBe(200);
  });

  test("plain HTTP on the port of HTTPS gets no list and does no harm", async () => {
    await using service = await Service.start(command, { args: flags(files.chain, files.key) });
    using connection = await RawConnection.open(service.url);
    connection.send("GET /pools HTTP/1.1\r\nHost: x\r\n\r\n");
    await connection.closed;
    expect(connection.rest).not.toContain("pools");
    const tls = { ca: await text(files.root) };
    expect((await fetch(`${service.url}/healthz`, { tls })).status).toBe(200);
  });

  test("a file that can't be read is a fault at the start", async () => {
    const missing = join(folder.path, "missing.pem");
    await refused(missing, files.key, "--tls-cert-path", missing);
    await refused(files.chain, missing, "--tls-key-path", missing);
    await refused(folder.path, files.key, "--tls-cert-path", folder.path);
    await refused(files.chain, folder.path, "--tls-key-path", folder.path);
    await refused(missing, missing, missing);
  });

  test("a file that is not what it should be is a fault at the start", async () => {
    const empty = await file("empty.pem", "");
    const garbage = await file("garbage.pem", "\0\x01garbage\n".repeat(1000));
    const broken = await file("broken.pem", (await text(files.leaf)).slice(0, 200));
    const hollow = await file(
      "hollow.pem",
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    for (const wrong of [empty, garbage, broken, hollow]) {
      await refused(wrong, files.key, "--tls-cert-path", wrong);
      await refused(files.chain, wrong, "--tls-key-path", wrong);
    }
    await refused(files.chain, files.encryptedKey, "--tls-key-path", files.encryptedKey);
  });

  test("a certificate and a key that are swapped are a fault at the start", async () => {
    await refused(files.key, files.chain, "--tls-cert-path", files.key);
    await refused(files.chain, files.chain, "--tls-key-path", files.chain);
    await refused(files.key, files.key, "--tls-cert-path", files.key);
  });

  test("a key that is not the certificate's is a fault at the start", async () => {
    await refused(files.chain, files.otherKey, files.otherKey);
    await refused(files.otherCert, files.key, files.key);
  });

  test("a chain that does not begin with the key's certificate is a fault at the start", async () => {
    const [leaf = "", intermediate = ""] = (await text(files.chain)).split(/(?<=END CERT.*\n)/);
    const reversed = await file("reversed.pem", intermediate + leaf);
    await refused(reversed, files.key, reversed);
  });

  test("a chain with a broken certificate behind the first is a fault at the start", async () => {
    const hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const chain = await file("broken-chain.pem", (await text(files.leaf)) + hollow);
    await refused(chain, files.key, chain);
  });

  test("a fault of the files never shows the key", async () => {
    const { stderr } = await run(command, { args: flags(files.key, files.otherKey) });
    for (const line of (await text(files.key)).split("\n").filter((each) => each.length > 20)) {
      if (!line.startsWith("-----")) expect(stderr).not.toContain(line);
    }
  });
}
