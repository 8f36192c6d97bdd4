import { describe, expect, test } from "bun:test";
import { type Config, readConfig } from "../../src/cli/config.ts";
import { parseCommandLine } from "../../src/cli/parse.ts";
import { ServiceError } from "../../src/runtime/errors.ts";

const config = (...args: string[]): Config => readConfig(parseCommandLine(args));

/** The message of a refusal for a wrong command line. */
function refused(...args: string[]): string {
  try {
    config(...args);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "usage") return error.message;
    throw error;
  }
  throw new Error(`not refused: ${args.join(" ")}`);
}

/** The flags that a refusal names, one a line. */
function named(...args: string[]): string[] {
  const lines = refused(...args).split("\n");
  const faults = lines.filter((line) => !line.endsWith("faults on the command line"));
  return [...new Set(faults.map((line) => line.trim().split(": ")[0] ?? ""))].sort();
}

const dynamodb = ["--registration-storage", "dynamodb", "--dynamodb-table", "pools"];

describe("defaults", () => {
  test("are those of the reference", () => {
    expect(config()).toEqual({
      listen: { host: "0.0.0.0", port: 8080 },
      tls: undefined,
      mode: "registrations",
      storage: { store: "memory" },
      heartbeatIntervalSecs: 5,
      leaseDurationSecs: 15,
      routers: [],
    });
  });

  test("give way to what is given, as --name value or --name=value", () => {
    expect(
      config("--listen=[::1]:0", "--lease-duration-secs", "0030", "--heartbeat-interval-secs=10"),
    ).toMatchObject({
      listen: { host: "::1", port: 0 },
      leaseDurationSecs: 30,
      heartbeatIntervalSecs: 10,
    });
  });
});

describe("--listen", () => {
  test.each([
    "127.0.0.1:1",
    "0.0.0.0:65535",
    "[::]:8080",
    "[2001:db8::1]:80",
    "[::ffff:1.2.3.4]:0",
  ])("takes %s", (address) => {
    expect(config("--listen", address).listen.port).toBeNumber();
  });

  test.each([
    "",
    "8080",
    ":8080",
    "localhost:8080",
    "127.0.0.1",
    "127.0.0.1:",
    "127.0.0.1:65536",
    "127.0.0.1:-1",
    "127.0.0.1:+1",
    "127.0.0.1: 80",
    "127.1:80",
    "256.0.0.1:80",
    "010.0.0.1:80",
    "::1:80",
    "[::1]",
    "[::g]:80",
    "[127.0.0.1]:80",
    "[fe80::1%eth0]:80",
    "http://127.0.0.1:80",
  ])("refuses %p", (address) => {
    expect(refused(`--listen=${address}`)).toStartWith("--listen: ");
  });
});

describe("whole seconds", () => {
  test.each(["-5", "+5", "5s", "5.0", "1e1", "", " 5", "0x5", "٥", "five"])(
    "are not %p",
    (value) => {
      expect(named(`--lease-duration-secs=${value}`)).toEqual(["--lease-duration-secs"]);
    },
  );

  test("have limits", () => {
    expect(refused("--lease-duration-secs", "86401")).toContain("at most 86400");
    expect(refused("--lease-duration-secs", "9".repeat(400))).toContain("at most 86400");
    expect(refused("--heartbeat-interval-secs", "0")).toContain("at least 1");
    expect(config("--lease-duration-secs", "86400").leaseDurationSecs).toBe(86_400);
    expect(named(...dynamodb, "--dynamodb-replication-grace-secs", "86401")).toEqual([
      "--dynamodb-replication-grace-secs",
    ]);
  });

  test("of the heartbeat are below those of the lease", () => {
    expect(refused("--heartbeat-interval-secs", "15")).toBe(
      "--heartbeat-interval-secs: 15 s is not below the lease of 15 s (--lease-duration-secs)",
    );
    expect(named("--lease-duration-secs", "5")).toEqual(["--heartbeat-interval-secs"]);
    expect(config("--heartbeat-interval-secs", "14").heartbeatIntervalSecs).toBe(14);
  });

  test("of DynamoDB flags are held against the lease only with that store", () => {
    const short = ["--lease-duration-secs", "2", "--heartbeat-interval-secs", "1"];
    expect(config(...short).leaseDurationSecs).toBe(2);
    expect(named(...short, ...dynamodb)).toEqual([
      "--dynamodb-poll-interval-secs",
      "--lease-skew-secs",
    ]);
  });
});

describe("--router", () => {
  test("is split at the first =, may repeat, and keeps the URL standard's form", () => {
    expect(config("--router", "a=http://H:80", "--router=b c=https://[::1]:9/")).toMatchObject({
      routers: [
        { replica: "a", url: "http://h/" },
        { replica: "b c", url: "https://[::1]:9/" },
      ],
    });
  });

  test.each([
    "a",
    "=http://h",
    "  =http://h",
    "\u0007=http://h",
    "a=",
    "a=h:80",
    "a=ftp://h",
    "a=http://h/path",
    "a=http://h?q",
    "a=http://h#f",
    "a=http://user@h",
    "a=b=http://h",
  ])("refuses %p", (router) => {
    expect(named("--router", router)).toEqual(["--router"]);
  });

  test("refuses an id that is given twice, once for each time too many", () => {
    const twice = ["--router", "a=http://h", "--router", "a=http://i", "--router", "b=http://i"];
    expect(refused(...twice)).toBe("--router: the id 'a' is given twice");
  });
});

describe("TLS flags", () => {
  test("go together", () => {
    const pair = ["--tls-cert-path", "c", "--tls-key-path", "k"];
    const paths = { certPath: "c", keyPath: "k" };
    expect(config(...pair).tls).toEqual({ ...paths, clientCaPath: undefined });
    expect(config(...pair, "--tls-client-ca-path", "a").tls).toEqual({
      ...paths,
      clientCaPath: "a",
    });
    expect(refused("--tls-cert-path", "c")).toBe("--tls-cert-path: needs --tls-key-path as well");
    expect(refused("--tls-key-path", "k")).toBe("--tls-key-path: needs --tls-cert-path as well");
    expect(named("--tls-client-ca-path", "a")).toEqual(["--tls-client-ca-path"]);
    expect(named("--tls-client-ca-path", "a", "--tls-cert-path", "c")).toEqual([
      "--tls-cert-path",
      "--tls-client-ca-path",
    ]);
    expect(named("--tls-cert-path=", "--tls-key-path=")).toEqual([
      "--tls-cert-path",
      "--tls-key-path",
    ]);
  });
});

describe("a flag of another setting", () => {
  test("is refused when it is set, whatever its value", () => {
    expect(refused("--router-namespace", "dynamo")).toBe(
      "--router-namespace: only applies with --pool-discovery karmada or mcs, " +
        "but --pool-discovery is registrations",
    );
    expect(refused("--pool-discovery", "mcs", "--router", "a=http://h")).toBe(
      "--router: only applies with --pool-discovery registrations, but --pool-discovery is mcs",
    );
    expect(refused("--lease-skew-secs", "2")).toBe(
      "--lease-skew-secs: only applies with --registration-storage dynamodb, " +
        "but --registration-storage is memory",
    );
  });

  test("is found together with every other fault", () => {
    expect(
      named(
        "stray",
        "--router-port=http",
        "--dynamodb-table=pools",
        "--lisen=x",
        "--lease-duration-secs=x",
        "--tls-key-path",
      ),
    ).toEqual(
      [
        "'stray'",
        "--dynamodb-table",
        "--lease-duration-secs",
        "--lisen",
        "--router-port",
        "--tls-key-path",
      ].sort(),
    );
  });

  test("is not guessed at while the setting itself is wrong", () => {
    expect(named("--pool-discovery=karmda", "--router=a=http://h", "--router-port=1")).toEqual([
      "--pool-discovery",
    ]);
  });
});

describe("DynamoDB flags", () => {
  test("have the defaults of the reference, and the region and endpoint of AWS's own", () => {
    expect(config(...dynamodb).storage).toEqual({
      store: "dynamodb",
      table: "pools",
      region: undefined,
      endpointUrl: undefined,
      pollIntervalSecs: 2,
      replicationGraceSecs: 30,
      skewSecs: 2,
    });
  });

  test("give way to what is given", () => {
    const line = [
      ...dynamodb,
      "--dynamodb-region=eu-central-1",
      "--dynamodb-endpoint-url=http://localhost:8000",
      "--dynamodb-poll-interval-secs=1",
      "--dynamodb-replication-grace-secs=0",
      "--lease-skew-secs=0",
    ];
    expect(config(...line).storage).toEqual({
      store: "dynamodb",
      table: "pools",
      region: "eu-central-1",
      endpointUrl: "http://localhost:8000/",
      pollIntervalSecs: 1,
      replicationGraceSecs: 0,
      skewSecs: 0,
    });
  });
});

describe("flags of the router Service", () => {
  test("have the defaults of the reference, and no port", () => {
    expect(config("--pool-discovery=karmada")).toMatchObject({
      mode: "karmada",
      routerService: { namespace: "dynamo", service: "global-router", port: undefined },
    });
  });

  test.each([
    ["grpc", "grpc"],
    ["080", 80],
    ["65535", 65_535],
    ["8080a", "8080a"],
  ])("take a port by name or by number: %s", (text, port) => {
    const line = ["--pool-discovery=mcs", "--router-namespace=a", "--router-service=b"];
    expect(config(...line, "--router-port", text)).toMatchObject({
      mode: "mcs",
      routerService: { namespace: "a", service: "b", port },
    });
  });

  test("are not there in registrations mode, nor --router in the others", () => {
    expect(config()).not.toContainKey("routerService");
    expect(config("--pool-discovery=mcs")).not.toContainKey("routers");
  });
});

describe("values of other modes and stores", () => {
  test("are checked before the mode or store is", () => {
    const kubernetes = ["--pool-discovery", "karmada"];
    for (const [flag, value] of [
      ["--router-namespace", "Dynamo"],
      ["--router-namespace", ""],
      ["--router-service", "a.b"],
      ["--router-service", "-a"],
      ["--router-port", "0"],
      ["--router-port", "65536"],
      ["--router-port", "a_b"],
    ] as const) {
      expect(named(...kubernetes, `${flag}=${value}`)).toEqual([flag]);
    }
    for (const [flag, value] of [
      ["--dynamodb-table", "a"],
      ["--dynamodb-table", "a b c"],
      ["--dynamodb-region", "US WEST"],
      ["--dynamodb-endpoint-url", "localhost:8000"],
      ["--dynamodb-endpoint-url", "ftp://h"],
      ["--dynamodb-poll-interval-secs", "0"],
      ["--dynamodb-poll-interval-secs", "15"],
      ["--lease-skew-secs", "15"],
    ] as const) {
      const line = ["--registration-storage", "dynamodb", `${flag}=${value}`];
      expect(named(...line)).toContain(flag);
    }
    expect(named("--registration-storage", "dynamodb")).toEqual(["--dynamodb-table"]);
  });
});
