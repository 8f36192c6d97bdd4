import { join } from "node:path";

/** Files of a certificate authority of the test's own. */
export interface Certificates {
  /** The root: what a client trusts. */
  readonly root: string;
  /** For 127.0.0.1, ::1 and localhost, signed by an intermediate that the root signed. */
  readonly chain: string;
  readonly key: string;
  /** The leaf of the chain alone. */
  readonly leaf: string;
  /** A pair of its own, RSA where the other is EC. */
  readonly otherCert: string;
  readonly otherKey: string;
  /** `key` under a passphrase. */
  readonly encryptedKey: string;
}

/** Whether certificates can be made here. Says so where they can't, and which tests that skips. */
export function canMakeCertificates(tests: string): boolean {
  if (Bun.which("openssl") !== null) return true;
  console.log(`skipped: ${tests} need the openssl command`);
  return false;
}

/** The `openssl` command in a folder. Rejects with what it complains of. */
export function opensslIn(folder: string): (...args: string[]) => Promise<void> {
  return async (...args) => {
    const child = Bun.spawn(["openssl", ...args], { cwd: folder, stdout: "pipe", stderr: "pipe" });
    const complaint = await new Response(child.stderr).text();
    if ((await child.exited) !== 0) throw new Error(`openssl ${args.join(" ")}: ${complaint}`);
  };
}

/** Makes certificates with the `openssl` command. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const at = (name: string) => join(folder, name);
  const openssl = opensslIn(folder);
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const authority = ["-addext", "basicConstraints=critical,CA:TRUE"];
  const names = "subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost";
  const sign = async (name: string, by: string, extension: string) => {
    await openssl(
      "req",
      ...newKey,
      "-subj",
      `/CN=${name}`,
      "-keyout",
      at(`${name}.key`),
      "-out",
      at(`${name}.csr`),
    );
    await Bun.write(at(`${name}.ext`), extension);
    await openssl(
      "x509",
      "-req",
      "-in",
      at(`${name}.csr`),
      "-CA",
      at(`${by}.crt`),
      "-CAkey",
      at(`${by}.key`),
      "-set_serial",
      "2",
      "-days",
      "2",
      "-extfile",
      at(`${name}.ext`),
      "-out",
      at(`${name}.crt`),
    );
  };

  await openssl(
    "req",
    "-x509",
    ...newKey,
    ...authority,
    "-subj",
    "/CN=root",
    "-days",
    "2",
    "-keyout",
    at("root.key"),
    "-out",
    at("root.crt"),
  );
  await sign("intermediate", "root", "basicConstraints=critical,CA:TRUE");
  await sign("leaf", "intermediate", names);
  const [leaf, intermediate] = await Promise.all(
    ["leaf.crt", "intermediate.crt"].map((name) => Bun.file(at(name)).text()),
  );
  await Bun.write(at("chain.crt"), `${leaf}${intermediate}`);
  await openssl(
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-subj",
    "/CN=other",
    "-addext",
    names,
    "-days",
    "2",
    "-keyout",
    at("other.key"),
    "-out",
    at("other.crt"),
  );
  await openssl(
    "pkcs8",
    "-topk8",
    "-in",
    at("leaf.key"),
    "-passout",
    "pass:secret",
    "-out",
    at("encrypted.key"),
  );
  return {
    root: at("root.crt"),
    chain: at("chain.crt"),
    key: at("leaf.key"),
    leaf: at("leaf.crt"),
    otherCert: at("other.crt"),
    otherKey: at("other.key"),
    encryptedKey: at("encrypted.key"),
  };
}
