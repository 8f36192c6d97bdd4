/** Keys for a while, as AWS hands them out. */
export interface HandedOut {
  readonly accessKeyId: string;
  readonly sessionToken: string;
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | null;
  /** The fields of the form that was sent, where one was. */
  readonly form: Readonly<Record<string, string>>;
}

type AnswerWith = (keys: HandedOut, expiration: Date) => Response;

/** Something of AWS that hands out keys, new ones each time. */
export class CredentialStandIn implements Disposable {
  readonly asked: Asked[] = [];
  readonly handedOut: HandedOut[] = [];
  /** How long the next keys are good for. */
  lifetimeSecs = 3600;
  /** Whether it is out of order. */
  isBroken = false;
  readonly #server: Bun.Server<undefined>;

  constructor(prefix: string, answerWith: AnswerWith) {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        this.asked.push({
          method: request.method,
          path: new URL(request.url).pathname,
          authorization: request.headers.get("authorization"),
          form: Object.fromEntries(new URLSearchParams(await request.text())),
        });
        if (this.isBroken) return new Response("out of order", { status: 500 });
        const number = this.handedOut.length + 1;
        const keys = {
          accessKeyId: `${prefix}${number}`,
          sessionToken: `token-of-${prefix}${number}`,
        };
        this.handedOut.push(keys);
        return answerWith(keys, new Date(Date.now() + this.lifetimeSecs * 1000));
      },
    });
  }

  get url(): string {
    return this.#server.url.origin;
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}

/** Answers `AssumeRoleWithWebIdentity` as AWS STS does. */
export function startSts(): CredentialStandIn {
  return new CredentialStandIn(
    "ASIASTS",
    ({ accessKeyId, sessionToken }, expiration) =>
      new Response(
        `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <Credentials>
      <AccessKeyId>${accessKeyId}</AccessKeyId>
      <SecretAccessKey>not-a-secret</SecretAccessKey>
      <SessionToken>${sessionToken}</SessionToken>
      <Expiration>${expiration.toISOString()}</Expiration>
    </Credentials>
    <AssumedRoleUser>
      <Arn>arn:aws:sts::123456789012:assumed-role/pools/service</Arn>
      <AssumedRoleId>AROATEST:service</AssumedRoleId>
    </AssumedRoleUser>
  </AssumeRoleWithWebIdentityResult>
  <ResponseMetadata><RequestId>00000000-0000-0000-0000-000000000000</RequestId></ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>`,
        { headers: { "Content-Type": "text/xml" } },
      ),
  );
}

/** Answers as the EKS Pod Identity Agent of a node does. */
export function startPodIdentityAgent(): CredentialStandIn {
  return new CredentialStandIn("ASIAPOD", ({ accessKeyId, sessionToken }, expiration) =>
    Response.json({
      AccessKeyId: accessKeyId,
      SecretAccessKey: "not-a-secret",
      Token: sessionToken,
      AccountId: "123456789012",
      Expiration: expiration.toISOString(),
    }),
  );
}
