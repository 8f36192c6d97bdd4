import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  type CredentialStandIn,
  startPodIdentityAgent,
  startSts,
} from "../../support/credential-stand-ins.ts";
import {
  bareAwsEnvironment,
  type Emulator,
  PATIENT_MS,
  startReplica,
} from "../../support/dynamodb.ts";
import { FaultProxy, type ProxiedRequest } from "../../support/fault-proxy.ts";
import { poolNamed } from "../../support/pool-items.ts";
import { type Service, temporaryFolder } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { lists, Relays, registerSoon, timedPost, Watch } from "../../support/watch.ts";

const DEADLINE_MS = 90_000;
/** The SDK asks for new keys this long before the old ones end. */
const REFRESHED_BEFORE_SECS = 300;

/** Whose keys a request was signed with. */
function signedWith({ headers }: ProxiedRequest): { accessKeyId: string; sessionToken: string } {
  const [, accessKeyId = ""] =
    /Credential=([^/]+)\/\d{8}\/us-east-1\/dynamodb\/aws4_request/.exec(
      headers.get("authorization") ?? "",
    ) ?? [];
  return { accessKeyId, sessionToken: headers.get("x-amz-security-token") ?? "" };
}

/** What identity the pod of a service has in a cluster, against what `command` starts. */
export function credentialTests(command: readonly string[], emulator: () => Emulator): void {
  const setUp = async (standIn: CredentialStandIn, identity: Readonly<Record<string, string>>) => {
    const table = await emulator().createTable();
    const proxy = await FaultProxy.start(table.endpoint);
    const start = () =>
      startReplica(table, {
        command,
        endpoint: proxy.url,
        lease: 4,
        heartbeat: 2,
        env: { ...bareAwsEnvironment, ...identity },
      });
    return {
      proxy,
      start,
      [Symbol.dispose]() {
        proxy[Symbol.dispose]();
        standIn[Symbol.dispose]();
      },
    };
  };

  const expectWorks = async (service: Service) => {
    await registerSoon(service.url, poolNamed("a"));
    await using watch = new Watch(service.url);
    await watch.for("the pool", ({ list }) => lists(list, "a"));
  };

  /** Checks that all requests were signed with keys that were handed out, and the last with the last. */
  const expectSigned = (proxy: FaultProxy, { handedOut }: CredentialStandIn) => {
    for (const request of proxy.requests) expect(handedOut).toContainEqual(signedWith(request));
    const [last] = proxy.requests.slice(-1).map(signedWith);
    expect(last).toEqual(handedOut.at(-1));
  };

  const kinds = [
    {
      name: "IAM roles for service accounts (IRSA)",
      standIn: startSts,
      identity: ({ url }: CredentialStandIn, tokenFile: string) => ({
        AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/pools",
        AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
        AWS_ENDPOINT_URL_STS: url,
      }),
      expectAsked: ({ method, form }: CredentialStandIn["asked"][number], token: string) => {
        expect(method).toBe("POST");
        expect(form).toMatchObject({
          Action: "AssumeRoleWithWebIdentity",
          RoleArn: "arn:aws:iam::123456789012:role/pools",
          WebIdentityToken: token,
        });
      },
    },
    {
      name: "EKS Pod Identity",
      standIn: startPodIdentityAgent,
      identity: ({ url }: CredentialStandIn, tokenFile: string) => ({
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/v1/credentials`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
      }),
      expectAsked: (
        { method, path, authorization }: CredentialStandIn["asked"][number],
        token: string,
      ) => {
        expect([method, path, authorization]).toEqual(["GET", "/v1/credentials", token]);
      },
    },
  ];

  for (const { name, standIn: startStandIn, identity, expectAsked } of kinds) {
    test.concurrent(
      `${name}: requests are signed with the keys that are handed out, and new ones are asked for before they end`,
      async () => {
        using folder = temporaryFolder();
        const tokenFile = join(folder.path, "token");
        await Bun.write(tokenFile, "first-token");
        const standIn = startStandIn();
        using given = await setUp(standIn, identity(standIn, tokenFile));
        const { proxy } = given;
        standIn.lifetimeSecs = REFRESHED_BEFORE_SECS + 4;
        await using service = await given.start();
        await expectWorks(service);
        for (const request of standIn.asked) expectAsked(request, "first-token");
        expect(standIn.handedOut).toHaveLength(1);
        expectSigned(proxy, standIn);

        // Kubernetes rotates the file.
        await Bun.write(tokenFile, "second-token");
        standIn.lifetimeSecs = 3600;
        const asked = await until(
          "new keys",
          () => (standIn.handedOut.length > 1 ? standIn.asked.at(-1) : undefined),
          PATIENT_MS,
        );
        expectAsked(asked, "second-token");
        const seen = proxy.requests.length;
        await until("requests with them", () =>
          proxy.requests.length > seen + 4 ? true : undefined,
        );
        await expectWorks(service);
        expectSigned(proxy, standIn);
        expect(standIn.handedOut).toHaveLength(2);
      },
      DEADLINE_MS,
    );

    test.concurrent(
      `${name}: while no new keys can be had the old ones serve, and nothing is lost`,
      async () => {
        using folder = temporaryFolder();
        const tokenFile = join(folder.path, "token");
        await Bun.write(tokenFile, "token");
        const standIn = startStandIn();
        using given = await setUp(standIn, identity(standIn, tokenFile));
        standIn.lifetimeSecs = REFRESHED_BEFORE_SECS + 3;
        await using service = await given.start();
        await expectWorks(service);
        standIn.isBroken = true;
        const asked = standIn.asked.length;
        await using watch = new Watch(service.url, 100);
        await until(
          "a refusal of new keys",
          () => (standIn.asked.length > asked ? true : undefined),
          PATIENT_MS,
        );
        // Still good for five minutes.
        await using relays = new Relays(service.url, [poolNamed("a")]);
        await Bun.sleep(3000);
        const kept = relays.answers.filter(({ status }) => status === 200);
        standIn.isBroken = false;
        standIn.lifetimeSecs = 3600;
        await watch.for(
          "a complete list",
          ({ list }) => Boolean(list?.complete && lists(list, "a")),
          PATIENT_MS,
        );
        expect(await timedPost(service.url, poolNamed("b"))).toMatchObject({ status: 200 });
        expect(kept.length, JSON.stringify(relays.answers)).toBeGreaterThan(0);
      },
      DEADLINE_MS,
    );
  }
}
