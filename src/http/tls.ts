import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { messageOf, ServiceError } from "../runtime/errors.ts";

/** A certificate chain and its key, as PEM. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads a certificate chain and its private key, and checks that they belong together: Bun would
 * start with a certificate alone.
 *
 * @throws ServiceError `startup`, naming the file
 */
export function readTlsPair(certPath: string, keyPath: string): TlsPair {
  const cert = read("--tls-cert-path", certPath);
  const key = read("--tls-key-path", keyPath);
  const [certificate] = attempt(`--tls-cert-path: ${certPath} is no PEM certificate chain`, () =>
    certificates(cert),
  );
  const privateKey = attempt(
    `--tls-key-path: ${keyPath} holds no PEM private key without a passphrase`,
    () => createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ServiceError(
      "startup",
      `--tls-key-path: ${keyPath} is not the key of the certificate in ${certPath}`,
    );
  }
  return { cert, key };
}

/** The certificates of a chain, the service's own first. Throws where one of them can't be read. */
function certificates(pem: string): [X509Certificate, ...X509Certificate[]] {
  const [first = pem, ...rest] =
    pem.match(/-----BEGIN CERTIFICATE-----.*?(?=-----BEGIN |$)/gs) ?? [];
  return [new X509Certificate(first), ...rest.map((each) => new X509Certificate(each))];
}

function read(flag: string, path: string): string {
  return attempt(`${flag}: cannot read ${path}`, () => readFileSync(path, "utf8"));
}

function attempt<T>(failure: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new ServiceError("startup", `${failure}: ${messageOf(error)}`);
  }
}
