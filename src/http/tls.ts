import { constants, createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { messageOf, ServiceError } from "../runtime/errors.ts";

/** Where the files are that TLS is served with. */
export interface TlsPaths {
  readonly certPath: string;
  readonly keyPath: string;
  /** Undefined: clients are not asked for certificates. */
  readonly clientCaPath: string | undefined;
}

/** What the files hold, as PEM. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
}

/** Texts that have been checked, and from when until when the certificate is valid. */
export interface Tls extends TlsTexts {
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  /** Milliseconds since 1970. */
  readonly notAfterMs: number;
}

/**
 * Reads the files as they are.
 *
 * @throws ServiceError `startup`, naming the flag and the file that can't be read
 */
export async function readTlsTexts(paths: TlsPaths): Promise<TlsTexts> {
  const read = async (flag: string, path: string) => {
    try {
      return await readFile(path, "utf8");
    } catch (error) {
      throw new ServiceError("startup", `${flag}: cannot read ${path}: ${messageOf(error)}`);
    }
  };
  const { clientCaPath } = paths;
  return {
    cert: await read("--tls-cert-path", paths.certPath),
    key: await read("--tls-key-path", paths.keyPath),
    clientCa:
      clientCaPath === undefined ? undefined : await read("--tls-client-ca-path", clientCaPath),
  };
}

/**
 * Checks that a certificate chain and a private key belong together, and that the client CAs are
 * some: Bun would start with a certificate alone. Whether the certificate is valid now is left to the
 * clients.
 *
 * @throws ServiceError `startup`, naming the flag and the file at fault
 */
export function checkTls(texts: TlsTexts, { certPath, keyPath, clientCaPath }: TlsPaths): Tls {
  const [certificate] = attempt(`--tls-cert-path: ${certPath} is no PEM certificate chain`, () =>
    certificates(texts.cert),
  );
  const privateKey = attempt(
    `--tls-key-path: ${keyPath} holds no PEM private key without a passphrase`,
    () => createPrivateKey(texts.key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ServiceError(
      "startup",
      `--tls-key-path: ${keyPath} is not the key of the certificate in ${certPath}`,
    );
  }
  const { clientCa } = texts;
  if (clientCa !== undefined) {
    attempt(`--tls-client-ca-path: ${clientCaPath} holds no PEM certificates`, () =>
      certificates(clientCa),
    );
  }
  return {
    ...texts,
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
  };
}

/** What Bun is told to serve with. */
export function tlsOptions({ cert, key, clientCa }: TlsTexts): Bun.TLSOptions {
  if (clientCa === undefined) return { cert, key };
  return {
    cert,
    key,
    ca: clientCa,
    requestCert: true,
    rejectUnauthorized: true,
    // A session that is taken up again proves no certificate: the client's may have expired since.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

/**
 * The certificates of a file, its first one first. Throws where one of them can't be read. Each begins
 * a line, as Bun has it too, so that a file with a byte order mark is refused here, with its name.
 */
function certificates(pem: string): [X509Certificate, ...X509Certificate[]] {
  const [first, ...rest] =
    pem.match(/^-----BEGIN CERTIFICATE-----.*?(?=^-----BEGIN |(?!.))/gms) ?? [];
  if (first === undefined) throw new Error("no line begins with -----BEGIN CERTIFICATE-----");
  return [new X509Certificate(first), ...rest.map((each) => new X509Certificate(each))];
}

function attempt<T>(failure: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new ServiceError("startup", `${failure}: ${messageOf(error)}`);
  }
}
