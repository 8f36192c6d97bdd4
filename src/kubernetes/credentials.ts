import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import { messageOf, ServiceError } from "../runtime/errors.ts";
import type { Log } from "../runtime/log.ts";
import { quoted } from "../runtime/text.ts";
import type { ApiServer, Env, Source } from "./api-server.ts";
import { type ExecCredential, runExecPlugin } from "./exec-plugin.ts";
import { RotatedText } from "./rotated-text.ts";

/** What a request carries to show who sends it, and what the server has to show. */
export interface Identity {
  readonly headers: Readonly<Record<string, string>>;
  readonly ca: string | undefined;
  readonly certificate: { readonly cert: string; readonly key: string } | undefined;
}

/** Who the service is to an API server, as the files and the plugin say now. */
export class Credentials {
  readonly #server: ApiServer;
  readonly #env: Env;
  readonly #clock: Clock;
  readonly #ca: RotatedText | undefined;
  readonly #certificate: { readonly cert: RotatedText; readonly key: RotatedText } | undefined;
  readonly #tokenFile: RotatedText | undefined;
  #fromPlugin: ExecCredential | undefined;
  #lastCertificate: string | undefined;

  constructor(
    server: ApiServer,
    surroundings: { readonly env: Env; readonly clock: Clock; readonly log: Log },
  ) {
    this.#server = server;
    this.#env = surroundings.env;
    this.#clock = surroundings.clock;
    const { ca, user } = server;
    const text = (source: Source, check: (text: string) => void) =>
      new RotatedText(source, check, surroundings);
    this.#ca = ca && text(ca, checkCertificates);
    this.#certificate = user.certificate && {
      cert: text(user.certificate.cert, checkCertificates),
      key: text(user.certificate.key, checkKey),
    };
    this.#tokenFile =
      user.tokenFile === undefined ? undefined : text({ file: user.tokenFile }, checkToken);
  }

  /**
   * Reads everything once. No plugin is run.
   *
   * @throws ServiceError `startup`, naming what can't be used
   */
  async check(): Promise<void> {
    const { token } = this.#server.user;
    try {
      await this.#ca?.read();
      if (token !== undefined) checkToken(token);
      // With a token to fall back on, the file may come later.
      if (token === undefined) await this.#tokenFile?.read();
      if (this.#certificate !== undefined) {
        const { cert, key } = this.#certificate;
        const [certificate] = certificatesOf(await cert.read());
        if (!certificate?.checkPrivateKey(createPrivateKey(await key.read()))) {
          throw new Error(`${key.where} is not the key of the certificate in ${cert.where}`);
        }
      }
    } catch (error) {
      throw new ServiceError("startup", `${this.#server.foundIn}: ${messageOf(error)}`);
    }
  }

  /** Rejects with an ApiError `denied` where a plugin hands out nothing, or with the signal's reason. */
  async identity(signal: AbortSignal): Promise<Identity> {
    const { basic, exec, impersonates } = this.#server.user;
    let token = await this.#token();
    let certificate = this.#certificate && {
      cert: await this.#certificate.cert.read(),
      key: await this.#certificate.key.read(),
    };
    if (exec !== undefined && token === undefined) {
      const handedOut = await this.#runPlugin(signal);
      token = handedOut.token;
      certificate = handedOut.certificate ?? certificate;
    }
    this.#lastCertificate = certificate?.cert;
    const authorization =
      token !== undefined
        ? `Bearer ${token}`
        : basic && `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString("base64")}`;
    return {
      headers: {
        ...(authorization === undefined ? {} : { Authorization: authorization }),
        ...(impersonates === undefined ? {} : { "Impersonate-User": impersonates }),
      },
      ca: await this.#ca?.read(),
      certificate,
    };
  }

  /** Whether the token file holds another token than the one in `identity`. */
  async hasRotated({ headers }: Identity): Promise<boolean> {
    if (this.#tokenFile === undefined) return false;
    this.#tokenFile.expire();
    return headers.Authorization !== `Bearer ${await this.#token()}`;
  }

  /** What was handed out has been refused: the next request asks for it anew. */
  expire(): void {
    this.#fromPlugin = undefined;
    this.#tokenFile?.expire();
    this.#certificate?.cert.expire();
    this.#certificate?.key.expire();
  }

  /** What shows who the service is, for messages. */
  get what(): string {
    const { foundIn, user } = this.#server;
    const parts: string[] = [];
    if (user.tokenFile !== undefined) parts.push(`the token in ${user.tokenFile}`);
    else if (user.token !== undefined) parts.push("the token");
    else if (user.exec !== undefined) {
      parts.push(`what the exec plugin ${quoted(user.exec.command[0] ?? "")} hands out`);
    } else if (user.basic !== undefined) parts.push("the username and password");
    if (this.#certificate !== undefined) {
      parts.push(`the client certificate in ${this.#certificate.cert.where}`);
    }
    return `${parts.length === 0 ? "no credentials at all" : parts.join(" and ")} (${foundIn})`;
  }

  /** Why the client certificate can't be good now; undefined where nothing shows. */
  get certificateProblem(): string | undefined {
    if (this.#lastCertificate === undefined) return undefined;
    const [certificate] = certificatesOf(this.#lastCertificate);
    const nowMs = this.#clock.wallMs();
    if (certificate === undefined) return undefined;
    if (Date.parse(certificate.validTo) < nowMs) {
      return `the client certificate expired on ${certificate.validTo}`;
    }
    if (Date.parse(certificate.validFrom) > nowMs) {
      return `the client certificate is not valid before ${certificate.validFrom}`;
    }
    return undefined;
  }

  async #token(): Promise<string | undefined> {
    try {
      return (await this.#tokenFile?.read()) ?? this.#server.user.token;
    } catch (error) {
      if (this.#server.user.token === undefined) throw error;
      return this.#server.user.token;
    }
  }

  async #runPlugin(signal: AbortSignal): Promise<ExecCredential> {
    const known = this.#fromPlugin;
    if (
      known !== undefined &&
      this.#clock.wallMs() < (known.expiresAtMs ?? Number.POSITIVE_INFINITY)
    ) {
      return known;
    }
    const { exec } = this.#server.user;
    if (exec === undefined) throw new Error("there is no plugin");
    this.#fromPlugin = await runExecPlugin(exec, { env: this.#env, clock: this.#clock, signal });
    return this.#fromPlugin;
  }
}

function checkToken(text: string): void {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error("there is no bearer token in it");
}

function checkCertificates(text: string): void {
  if (certificatesOf(text).length === 0) throw new Error("there is no PEM certificate in it");
}

function checkKey(text: string): void {
  createPrivateKey(text);
}

function certificatesOf(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}
