import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  awsEnvironment,
  bareAwsEnvironment,
  dynoxide,
  Emulator,
  inTurn,
  type KeyAttribute,
  launchOf,
  PATIENT_MS,
  type ReplicaOptions,
  sourceCommand,
  startReplica,
  TABLE_KEY,
} from "../../support/dynamodb.ts";
import {
  dribble,
  drop,
  type Fault,
  FaultProxy,
  fail,
  hang,
  refuse,
} from "../../support/fault-proxy.ts";
import { expectNoStackTrace, expectStartupError } from "../../support/outcomes.ts";
import { poolNamed, skNamed } from "../../support/pool-items.ts";
import { expectRefusal, post } from "../../support/relay.ts";
import { freePort, type Service, temporaryFolder } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { lists, names, Relays, registerSoon, Watch } from "../../support/watch.ts";

const denied = refuse(400, "AccessDeniedException", "User: test is not authorized");

/** How the service starts, waits for its table, or says why it can't have it. */
export function startUpTests(emulator: () => Emulator): void {
  describe("ends with one clear line and status 1", () => {
    const refused = (
      table: { readonly name: string; readonly endpoint: string },
      options: ReplicaOptions,
      ...words: readonly string[]
    ) => inTurn(() => expectStartupError(sourceCommand, launchOf(table, options), ...words));

    test.concurrent("where the table is not there", async () => {
      const table = { name: "no-such-table", endpoint: emulator().url };
      await refused(
        table,
        { region: "eu-west-3" },
        "no-such-table",
        "eu-west-3",
        "--dynamodb-table",
      );
    });

    const wrongKeys: Readonly<Record<string, readonly KeyAttribute[]>> = {
      "it has no sort key": TABLE_KEY.slice(0, 1),
      "its partition key has another name": [
        { name: "id", type: "S", use: "HASH" },
        ...TABLE_KEY.slice(1),
      ],
      "its sort key has another name": [
        ...TABLE_KEY.slice(0, 1),
        { name: "key", type: "S", use: "RANGE" },
      ],
      "its partition key is a number": [
        { name: "pk", type: "N", use: "HASH" },
        ...TABLE_KEY.slice(1),
      ],
      "its sort key is a number": [
        ...TABLE_KEY.slice(0, 1),
        { name: "sk", type: "N", use: "RANGE" },
      ],
      "its sort key is binary": [...TABLE_KEY.slice(0, 1), { name: "sk", type: "B", use: "RANGE" }],
      "its keys are the other way round": [
        { name: "sk", type: "S", use: "HASH" },
        { name: "pk", type: "S", use: "RANGE" },
      ],
    };
    for (const [what, key] of Object.entries(wrongKeys)) {
      test.concurrent(`where the table is of another form: ${what}`, async () => {
        const table = await emulator().createTable({ key });
        const found = key.map(({ name, type, use }) => `${name} (${type}, ${use})`).join(", ");
        await refused(table, {}, table.name, found, "needs pk (S, HASH), sk (S, RANGE)");
      });
    }

    test.concurrent("where the table is of another form and only Query may tell", async () => {
      const table = await emulator().createTable({
        key: wrongKeys["its partition key has another name"] ?? [],
      });
      using proxy = await FaultProxy.start(table.endpoint);
      proxy.break(denied, "DescribeTable", "DescribeTimeToLive");
      await refused(table, { endpoint: proxy.url }, table.name, "pk");
    });

    test.concurrent("where there are no credentials", async () => {
      const table = await emulator().createTable();
      await refused(table, { env: bareAwsEnvironment }, "no AWS credentials");
    });

    test.concurrent("where there is no region", async () => {
      const table = await emulator().createTable();
      await refused(table, { region: null }, "region", "--dynamodb-region", "AWS_REGION");
    });

    test.concurrent("where Query is denied", async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      proxy.break(denied, "Query");
      await refused(table, { endpoint: proxy.url }, "dynamodb:Query", table.name, "IAM");
      expect(proxy.reads()).toHaveLength(1);
    });

    test.concurrent("where Query is denied, and all the rest as well", async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      proxy.break(denied, "Query", "DescribeTable", "DescribeTimeToLive", "UpdateItem");
      await refused(table, { endpoint: proxy.url }, "dynamodb:Query", table.name, "IAM");
    });

    for (const type of ["UnrecognizedClientException", "InvalidSignatureException"]) {
      test.concurrent(`where AWS refuses the credentials by ${type}`, async () => {
        const table = await emulator().createTable();
        using proxy = await FaultProxy.start(table.endpoint);
        const message = "The security token included in the request is invalid.";
        proxy.break(
          refuse(400, type, message),
          ...(["DescribeTable", "DescribeTimeToLive", "Query", "UpdateItem"] as const),
        );
        await refused(table, { endpoint: proxy.url }, "credentials", type, message);
      });
    }

    test.concurrent("where the endpoint comes late and has no such table", async () => {
      using proxy = await FaultProxy.start(emulator().url);
      proxy.break(drop, "DescribeTable");
      const table = { name: "no-such-table", endpoint: proxy.url };
      await using service = await startReplica(table);
      await service.says(/can't be read yet/);
      proxy.mend();
      expect(await service.ended()).toEqual({ status: 1, signal: null });
      expect(service.lines.filter((line) => line.startsWith("error: "))).toHaveLength(1);
      expect(service.lines.at(-1)).toContain("no-such-table");
      expectNoStackTrace(service.stderr);
    });
  });

  /** Checks that the service does all that it should. */
  const expectWorks = async (service: Service, name = "a") => {
    await using watch = new Watch(service.url);
    await watch.for("the first list", ({ status }) => status === 200);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await registerSoon(service.url, poolNamed(name));
    await watch.for("the pool", ({ list }) => names(list)?.includes(name) ?? false);
  };

  describe("goes on with a warning", () => {
    const warnings = (service: Service) =>
      service.lines.filter((line) => / WARN +registrations: /.test(line));

    for (const operations of [
      ["DescribeTable"],
      ["DescribeTimeToLive"],
      ["DescribeTable", "DescribeTimeToLive"],
    ] as const) {
      test.concurrent(`where ${operations.join(" and ")} is denied`, async () => {
        const table = await emulator().createTable();
        using proxy = await FaultProxy.start(table.endpoint);
        proxy.break(denied, ...operations);
        await using service = await startReplica(table, { endpoint: proxy.url, lease: 60 });
        await expectWorks(service);
        const said = warnings(service);
        expect(said).toHaveLength(operations.length);
        for (const [index, operation] of operations.entries()) {
          expect(said[index]).toContain(`dynamodb:${operation} `);
          expect(said[index]).toContain(table.name);
        }
        expect(await service.stop()).toEqual({ status: 0, signal: null });
      });
    }

    for (const [what, ttl] of [
      ["is off", null],
      ["looks at another attribute", "expires"],
    ] as const) {
      test.concurrent(`where TTL ${what}`, async () => {
        const table = await emulator().createTable({ ttl });
        await using service = await startReplica(table, { lease: 60 });
        await expectWorks(service);
        const said = warnings(service);
        expect(said).toHaveLength(1);
        expect(said[0]).toContain("TTL");
        expect(said[0]).toContain("expires_at");
        expect(said[0]).toContain(table.name);
      });
    }

    test.concurrent("and with none where all is well", async () => {
      const table = await emulator().createTable();
      await using service = await startReplica(table, { lease: 60 });
      await expectWorks(service);
      expect(service.lines.filter((line) => !/ INFO |not running/.test(line))).toEqual([]);
    });
  });

  describe("takes from the AWS environment", () => {
    test.concurrent("the region and the endpoint, where no flag says them", async () => {
      const table = await emulator().createTable();
      const env = {
        ...awsEnvironment,
        AWS_REGION: "eu-west-1",
        AWS_ENDPOINT_URL_DYNAMODB: table.endpoint,
      };
      await using service = await startReplica(table, {
        region: null,
        endpoint: null,
        env,
        lease: 60,
      });
      await expectWorks(service);
      expect((await table.get(skNamed("a")))?.written_in).toEqual({ S: "eu-west-1" });
    });

    test.concurrent("a profile with its keys and its region", async () => {
      const table = await emulator().createTable();
      using folder = temporaryFolder();
      const at = (name: string) => join(folder.path, name);
      await Bun.write(at("config"), "[profile pools]\nregion = ap-south-1\n");
      await Bun.write(
        at("credentials"),
        "[pools]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = not-a-secret\n",
      );
      const env = {
        ...bareAwsEnvironment,
        AWS_PROFILE: "pools",
        AWS_CONFIG_FILE: at("config"),
        AWS_SHARED_CREDENTIALS_FILE: at("credentials"),
      };
      using proxy = await FaultProxy.start(table.endpoint);
      await using service = await startReplica(table, {
        region: null,
        endpoint: proxy.url,
        env,
        lease: 60,
      });
      await expectWorks(service);
      expect((await table.get(skNamed("a")))?.written_in).toEqual({ S: "ap-south-1" });
      for (const { headers } of proxy.requests) {
        expect(headers.get("authorization")).toContain("Credential=AKIAPROFILE/");
      }
    });
  });

  /** Checks that the service is up, and says that and why it can't list. */
  const expectUnready = async (service: Service) => {
    const health = await fetch(`${service.url}/healthz`);
    expect([health.status, await health.text()]).toEqual([503, ""]);
    await expectRefusal(await fetch(`${service.url}/pools`), 503, ["table"]);
    expect((await fetch(`${service.url}/routers`)).status).toBe(200);
  };

  describe("waits, and says 503, while the endpoint", () => {
    const faults: Readonly<Record<string, Fault>> = {
      "drops connections": drop,
      "never answers": hang,
      "dribbles its answers": dribble,
      "throttles by throughput": refuse(400, "ProvisionedThroughputExceededException"),
      "throttles by rate": refuse(400, "ThrottlingException"),
      "fails with status 500": refuse(500, "InternalServerError"),
      "fails with status 503": fail(503),
    };
    for (const [what, fault] of Object.entries(faults)) {
      test.concurrent(`${what}; registrations are kept as soon as writes work`, async () => {
        const table = await emulator().createTable();
        using proxy = await FaultProxy.start(table.endpoint);
        const reads = ["DescribeTable", "DescribeTimeToLive", "Query"] as const;
        proxy.break(fault, ...reads, "UpdateItem");
        await using service = await startReplica(table, {
          endpoint: proxy.url,
          // It bounds how long a read may hang.
          lease: 4,
          heartbeat: 2,
        });
        await expectUnready(service);
        await expectRefusal(await post(service.url, poolNamed("early")), 503, []);
        await service.says(/the table can't be read yet; trying again/);
        proxy.mend();
        proxy.break(fault, ...reads);
        await registerSoon(service.url, poolNamed("early"));
        await expectUnready(service);
        await using _ = new Relays(service.url, [poolNamed("early")]);
        proxy.mend();
        // The check has passed, but nothing is read.
        proxy.break(fault, "Query");
        await until("a read", () => (proxy.reads().length > 0 ? true : undefined), PATIENT_MS);
        await expectUnready(service);
        proxy.mend();
        await expectWorks(service, "late");
        await using watch = new Watch(service.url);
        await watch.for("the pool that came early", ({ list }) => lists(list, "early"));
        expect(service.isRunning).toBe(true);
        expect(service.stderr).not.toMatch(/^error: /m);
      });
    }

    test.concurrent("is not there; it is found when it comes, and registrations work with it", async () => {
      using folder = temporaryFolder();
      const at = { port: await freePort(), dbPath: join(folder.path, "table.db") };
      const first = await Emulator.start(dynoxide, at);
      const table = await first.createTable();
      await first[Symbol.asyncDispose]();
      await using service = await startReplica(table, { lease: 60 });
      await expectUnready(service);
      await expectRefusal(await post(service.url, poolNamed("a")), 503, ["not kept"]);
      await service.says(/the table can't be read yet; trying again/);
      await expectUnready(service);
      await using _ = await Emulator.start(dynoxide, at);
      await registerSoon(service.url, poolNamed("a"));
      await expectWorks(service, "b");
    });

    test.concurrent("is not there; it is tried again every 1 to 5 s, less and less often", async () => {
      const table = await emulator().createTable();
      using proxy = await FaultProxy.start(table.endpoint);
      // Final for the SDK, which would try again by itself.
      proxy.break(refuse(400, "SomethingElseException"), "DescribeTable");
      await using service = await startReplica(table, { endpoint: proxy.url });
      await until("five tries", () => (proxy.of("DescribeTable").length >= 5 ? true : undefined));
      const gaps = proxy
        .of("DescribeTable")
        .slice(1)
        .map(
          ({ startedAtMs }, index, { length: _ }) =>
            startedAtMs - (proxy.of("DescribeTable")[index]?.startedAtMs ?? 0),
        );
      for (const gap of gaps) expect(gap, String(gaps)).toBeGreaterThan(700);
      for (const gap of gaps) expect(gap, String(gaps)).toBeLessThan(9000);
      expect(gaps[3] ?? 0, String(gaps)).toBeGreaterThan(gaps[0] ?? 0);
      expect(service.isRunning).toBe(true);
    });
  });

  describe("ends with status 0 on SIGTERM", () => {
    for (const [what, fault] of Object.entries({
      "while the endpoint never answers": hang,
      "while the endpoint drops connections": drop,
      "between two tries": refuse(500, "InternalServerError"),
    })) {
      test.concurrent(what, async () => {
        const table = await emulator().createTable();
        using proxy = await FaultProxy.start(table.endpoint);
        proxy.break(fault, "DescribeTable", "Query");
        await using service = await startReplica(table, { endpoint: proxy.url, lease: 60 });
        await until("a try", () => (proxy.of("DescribeTable").length > 0 ? true : undefined));
        if (what === "between two tries") await service.says(/trying again/);
        expect(await service.stop()).toEqual({ status: 0, signal: null });
        expect(service.stderr).toContain("stopped");
        expectNoStackTrace(service.stderr);
      });
    }

    test.concurrent("while nothing serves there", async () => {
      const endpoint = `http://127.0.0.1:${await freePort()}`;
      await using service = await startReplica({ name: "pools", endpoint });
      await service.says(/trying again/);
      await expectUnready(service);
      expect(await service.stop()).toEqual({ status: 0, signal: null });
      expectNoStackTrace(service.stderr);
    });
  });
}
