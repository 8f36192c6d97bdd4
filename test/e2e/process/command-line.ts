import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  expectNoStackTrace,
  expectStartupError,
  expectUsageError,
} from "../../support/outcomes.ts";
import {
  forEachOf,
  type Outcome,
  Process,
  run,
  Service,
  temporaryFolder,
} from "../../support/service.ts";

/** Every flag under its heading. */
const flags = {
  "All modes": [
    "listen",
    "tls-cert-path",
    "tls-key-path",
    "tls-client-ca-path",
    "pool-discovery",
    "registration-storage",
    "heartbeat-interval-secs",
    "lease-duration-secs",
  ],
  "With --pool-discovery registrations": ["router"],
  "With --pool-discovery karmada or mcs": ["router-namespace", "router-service", "router-port"],
  "With --registration-storage dynamodb": [
    "dynamodb-table",
    "dynamodb-region",
    "dynamodb-endpoint-url",
    "dynamodb-poll-interval-secs",
    "dynamodb-replication-grace-secs",
    "lease-skew-secs",
  ],
};
const kubernetesFlags = flags["With --pool-discovery karmada or mcs"];
const dynamodbFlags = flags["With --registration-storage dynamodb"];

/** A right value for each flag. */
const rightValues: Readonly<Record<string, string>> = {
  listen: "127.0.0.1:0",
  "tls-cert-path": "cert.pem",
  "tls-key-path": "key.pem",
  "tls-client-ca-path": "ca.pem",
  "pool-discovery": "registrations",
  "registration-storage": "memory",
  "heartbeat-interval-secs": "5",
  "lease-duration-secs": "15",
  router: "a=http://a/",
  "router-namespace": "dynamo",
  "router-service": "global-router",
  "router-port": "8000",
  "dynamodb-table": "pools",
  "dynamodb-region": "us-west-2",
  "dynamodb-endpoint-url": "http://127.0.0.1:1",
  "dynamodb-poll-interval-secs": "2",
  "dynamodb-replication-grace-secs": "30",
  "lease-skew-secs": "2",
};
const allFlags = Object.values(flags).flat();
const withValue = (name: string) => [`--${name}`, rightValues[name] ?? ""];

/** The lines of a message that begin with a flag, or with whatever was typed in its place. */
function linesAbout(stderr: string, subject: string): string[] {
  const lines = stderr.split("\n").map((line) => line.replace(/^error: |^ +/, ""));
  return lines.filter((line) => line.startsWith(`${subject}: `));
}

const MCS = ["--pool-discovery", "mcs"];
const DYNAMODB = ["--registration-storage", "dynamodb", "--dynamodb-table", "pools"];

export function commandLineTests(command: readonly string[]): void {
  const refused = (args: readonly string[], ...words: string[]) =>
    expectUsageError(command, args, ...words);

  /** Checks that one message says of each subject what is wrong with it. */
  const refusedEach = async (
    args: readonly string[],
    faults: Readonly<Record<string, readonly string[]>>,
  ) => {
    const { stderr } = await refused(args);
    for (const [subject, words] of Object.entries(faults)) {
      const about = linesAbout(stderr, subject).join("\n");
      expect(about, `${subject} in ${stderr}`).not.toBe("");
      for (const word of words) expect(about, subject).toContain(word);
    }
  };
  const each = (names: readonly string[], ...words: string[]) =>
    Object.fromEntries(names.map((name) => [`--${name}`, words]));

  /** For Kubernetes settings that are right: what is missing is an API server. */
  const takenWithoutApiServer = (args: readonly string[]) =>
    expectStartupError(command, { args }, "set KUBECONFIG");

  /** For DynamoDB settings that are right: what is missing is the region, which the environment may give. */
  const takenWithoutRegion = (args: readonly string[]) =>
    expectStartupError(command, { args }, "no AWS region is set");

  const starts = async (args: readonly string[]) => {
    await using service = await Service.start(command, { args });
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  };

  const expectPrinted = ({ status, stderr }: Outcome) => {
    expect(stderr).toBe("");
    expect(status).toBe(0);
  };

  test("--help prints to standard output and exits 0", async () => {
    for (const arg of ["--help", "-h"]) {
      const outcome = await run(command, { args: [arg] });
      expectPrinted(outcome);
      expect(outcome.stdout).toStartWith("global-discovery-service ");
      expect(outcome.stdout).toEndWith("\n");
    }
  });

  test("--help groups the flags under exactly the four headings", async () => {
    const { stdout } = await run(command, { args: ["--help"] });
    const sections = stdout.split(/^(?=\S.*:$)/m).slice(1);
    const grouped = sections.map((section) => [
      section.split("\n", 1)[0]?.slice(0, -1),
      [...section.matchAll(/^ +--([a-z-]+) /gm)].map((match) => match[1]),
    ]);
    expect(grouped).toEqual(Object.entries(flags));
    expect(stdout).toMatch(/-h, --help\b/);
    expect(stdout).toMatch(/-V, --version\b/);
  });

  test("--version prints the name and the version and exits 0", async () => {
    for (const arg of ["--version", "-V"]) {
      const outcome = await run(command, { args: [arg] });
      expectPrinted(outcome);
      expect(outcome.stdout).toMatch(/^global-discovery-service \d+\.\d+\.\d+\n$/);
    }
  });

  test("--help and --version are printed whole, into a file too", async () => {
    using folder = temporaryFolder();
    for (const arg of ["--help", "--version"]) {
      const { stdout } = await run(command, { args: [arg] });
      expect(stdout).not.toBe("");
      for (let round = 0; round < 5; round += 1) {
        const file = join(folder.path, `${arg}-${round}`);
        const script = 'out=$1; shift; exec "$@" > "$out"';
        expectPrinted(await run(["sh", "-c", script, "sh", file, ...command], { args: [arg] }));
        expect(await Bun.file(file).text(), `${arg}, round ${round}`).toBe(stdout);
      }
    }
  });

  test("--help and --version win over everything else on the line", async () => {
    const faults = ["--bogus", "x", "--listen", "nowhere", "--heartbeat-interval-secs", "0"];
    for (const [wins, first] of [
      ["--help", "Usage:"],
      ["-h", "Usage:"],
      ["--version", /^global-discovery-service \S+\n$/],
      ["-V", /^global-discovery-service \S+\n$/],
    ] as const) {
      for (const args of [
        [...faults, wins],
        [wins, ...faults],
        ["--listen", wins],
        ["--pool-discovery", "mcs", wins],
        ["stray", wins],
        ["--listen", "127.0.0.1:0", wins],
      ]) {
        const outcome = await run(command, { args });
        expectPrinted(outcome);
        if (typeof first === "string") expect(outcome.stdout).toContain(first);
        else expect(outcome.stdout).toMatch(first);
      }
    }
  });

  test("--help wins over --version", async () => {
    for (const args of [
      ["--help", "--version"],
      ["--version", "--help"],
      ["-V", "-h"],
    ]) {
      const outcome = await run(command, { args });
      expectPrinted(outcome);
      expect(outcome.stdout).toContain("Usage:");
    }
  });

  test("a value may follow its flag or an equals sign", async () => {
    await using spaced = await Service.start(command, {
      args: ["--listen", "127.0.0.1:0", "--router", "a=http://a"],
    });
    await using equals = await Service.start(command, {
      args: ["--listen=127.0.0.1:0", "--router=a=http://a"],
    });
    for (const { url } of [spaced, equals]) {
      expect(await (await fetch(`${url}/routers`)).text()).toBe(
        '{"routers":[{"replica":"a","url":"http://a/"}]}',
      );
    }
  });

  test("an unknown flag is refused, with a suggestion for a near miss", async () => {
    const near: Record<string, string> = {
      "--lisen": "--listen",
      "--listne": "--listen",
      "--Listen": "--listen",
      "--tls-cert": "--tls-cert-path",
      "--tls_key_path": "--tls-key-path",
      "--pool-discovry": "--pool-discovery",
      "--registration-store": "--registration-storage",
      "--heartbeat-interval-sec": "--heartbeat-interval-secs",
      "--lease-duration": "--lease-duration-secs",
      "--routers": "--router",
      "--router-prot": "--router-port",
      "--dynamo-table": "--dynamodb-table",
      "--hlep": "--help",
      "--verison": "--version",
    };
    await refusedEach(
      Object.keys(near),
      Object.fromEntries(
        Object.entries(near).map(([typed, meant]) => [typed, [`did you mean ${meant}?`]]),
      ),
    );
    await forEachOf([["--lisen"], ["--lisen", "x"], ["--lisen=x"]], async (args) => {
      await refused(args, "--lisen", "did you mean --listen?");
    });
  });

  test("an unknown flag that is near nothing gets no suggestion", async () => {
    const { stderr } = await refused(["--zzzzzzzzzz", "--config", "-z", "-p"]);
    for (const typed of ["--zzzzzzzzzz", "--config", "-z", "-p"]) expect(stderr).toContain(typed);
    expect(stderr).not.toContain("did you mean");
  });

  test("names that every JavaScript object has are unknown flags", async () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"];
    await refusedEach(
      names.map((name) => `--${name}`),
      each(names, "unknown"),
    );
    await refusedEach(
      names.map((name) => `--${name}=x`),
      each(names, "unknown"),
    );
  });

  test("a flag can't be turned off, shortened or written with one dash", async () => {
    await forEachOf(
      ["--no-listen", "--list", "-listen", "-l", "--no-router", "-"],
      async (typed) => {
        await refused([typed], typed);
      },
    );
  });

  test("a stray argument is refused", async () => {
    await forEachOf(
      [["serve"], ["--listen", "127.0.0.1:0", "stray"], [""], ["a b"]],
      async (args) => {
        await refused(args, `'${args.at(-1)}'`);
      },
    );
  });

  test("a missing value is refused, for every flag", async () => {
    await refusedEach(
      allFlags.map((name) => `--${name}`),
      each(allFlags, "needs a value"),
    );
    await refused(["--listen"], "--listen");
    await refused(["--listen", "--pool-discovery", "registrations"], "--listen");
  });

  test("an empty value is refused, for every flag", async () => {
    await refusedEach(
      allFlags.map((name) => `--${name}=`),
      each(allFlags),
    );
    await refusedEach(
      allFlags.flatMap((name) => [`--${name}`, ""]),
      each(allFlags),
    );
    await refused(["--listen="], "--listen");
  });

  test("a repeated flag that takes one value is refused, the same value again too", async () => {
    const single = allFlags.filter((name) => name !== "router");
    await refusedEach([...single, ...single].flatMap(withValue), each(single, "more than once"));
    await refused(
      ["--listen=127.0.0.1:0", "--listen", "127.0.0.1:1"],
      "--listen",
      "more than once",
    );
  });

  test("one message names every flag at fault", async () => {
    const { stderr } = await refused(
      [
        ...["--lisen", "127.0.0.1:0"],
        ...["--listen", "nowhere"],
        ...["--registration-storage", "disk"],
        ...["--heartbeat-interval-secs", "0"],
        ...["--lease-duration-secs", "1e3"],
        ...["--router", "x"],
        ...["--router-namespace", "n"],
        ...["--tls-cert-path", "c"],
        "stray",
        "--router-port",
      ],
      "--lisen",
      "--listen",
      "--registration-storage",
      "--heartbeat-interval-secs",
      "--lease-duration-secs",
      "--router:",
      "--router-namespace",
      "--router-port",
      "--tls-cert-path",
      "'stray'",
    );
    expect(stderr).toContain("nowhere");
    expect(stderr).toContain("1e3");
  });

  test("a message shows no more of a value than a line, and nothing that a terminal obeys", async () => {
    const odd = `\x1b[31m\r\n\u009b31m\u202e${"x".repeat(20_000)}`;
    for (const args of [
      [`--${odd}`],
      [odd],
      [`--listen=${odd}`],
      [`--router=${odd}`],
      [`--pool-discovery=${odd}`],
      [`--lease-duration-secs=${odd}`],
      [`--help=${odd}`],
    ]) {
      const { stderr } = await refused(args);
      expect(stderr).not.toMatch(/[\u202e\u2028\u2029]/);
    }
  });

  test("--listen takes an IP address and a port, and nothing else", async () => {
    const wrong = [
      "8080",
      ":8080",
      "0.0.0.0",
      "0.0.0.0:",
      "0.0.0.0:x",
      "0.0.0.0:80x",
      "0.0.0.0:-1",
      "0.0.0.0:65536",
      "256.0.0.1:80",
      "1.2.3:80",
      "01.2.3.4:80",
      "localhost:8080",
      "[::]",
      "::",
      "::1:8080",
      "[::g]:80",
      "[127.0.0.1]:80",
      "http://0.0.0.0:80",
      " 0.0.0.0:80",
      "unix:/run/socket",
    ];
    await forEachOf(wrong, async (value) => {
      await refused([`--listen=${value}`], "--listen:", `'${value}'`);
    });
  });

  test("seconds are whole: digits, no sign, no unit, no exponent", async () => {
    const wrong = [
      "+5",
      "-5",
      "5s",
      "1e1",
      "5.0",
      "5.",
      "0x5",
      " 5",
      "5 ",
      "٥",
      "five",
      "1_0",
      "1,0",
      "NaN",
    ];
    const names = [
      "heartbeat-interval-secs",
      "lease-duration-secs",
      "dynamodb-poll-interval-secs",
      "dynamodb-replication-grace-secs",
      "lease-skew-secs",
    ];
    await forEachOf([...wrong, "99999999999999999999"], async (value) => {
      await refusedEach(
        [...DYNAMODB, ...names.map((name) => `--${name}=${value}`)],
        each(names, `'${value}'`),
      );
    });
    await refused(["--lease-duration-secs", "-5"], "--lease-duration-secs");
  });

  test("leading zeros do no harm", async () => {
    await using service = await Service.start(command, {
      args: ["--heartbeat-interval-secs", "007", "--lease-duration-secs", "000000000000000000030"],
    });
    expect(await service.says(/lease_s=30 /)).toBeDefined();
  });

  test("the heartbeat interval is above zero and below the lease", async () => {
    const pair = (heartbeat: string, lease: string) => [
      `--heartbeat-interval-secs=${heartbeat}`,
      `--lease-duration-secs=${lease}`,
    ];
    await refused(pair("0", "15"), "--heartbeat-interval-secs");
    await refused(pair("15", "15"), "--heartbeat-interval-secs", "--lease-duration-secs");
    await refused(pair("16", "15"), "--heartbeat-interval-secs", "--lease-duration-secs");
    await refused(["--heartbeat-interval-secs=15"], "--heartbeat-interval-secs");
    await refused(["--lease-duration-secs=5"], "--lease-duration-secs");
    await starts(pair("14", "15"));
    await starts(["--lease-duration-secs=6"]);
  });

  test("the lease is at most 86400 seconds", async () => {
    await refused(["--lease-duration-secs=0"], "--lease-duration-secs");
    await refused(["--lease-duration-secs=86401"], "--lease-duration-secs", "86400");
    await starts(["--lease-duration-secs=86400", "--heartbeat-interval-secs=86399"]);
  });

  test("a short lease with the memory store is fine whatever the defaults of DynamoDB", async () => {
    await starts(["--heartbeat-interval-secs=1", "--lease-duration-secs=2"]);
  });

  test("a certificate needs its key, and a client CA needs both", async () => {
    await refused(["--tls-cert-path", "c"], "--tls-cert-path", "--tls-key-path");
    await refused(["--tls-key-path", "k"], "--tls-key-path", "--tls-cert-path");
    await refused(["--tls-client-ca-path", "a"], "--tls-client-ca-path", "--tls-cert-path");
    await refused(
      ["--tls-client-ca-path", "a", "--tls-cert-path", "c"],
      "--tls-client-ca-path",
      "--tls-cert-path",
      "--tls-key-path",
    );
  });

  test("--pool-discovery and --registration-storage take the values of the reference", async () => {
    await forEachOf(["consul", "MCS", "registration", "karmada,mcs", " mcs"], async (value) => {
      await refused([`--pool-discovery=${value}`], "--pool-discovery", "karmada", "mcs");
    });
    await forEachOf(["redis", "Memory", "dynamo", "memory "], async (value) => {
      await refused([`--registration-storage=${value}`], "--registration-storage", "dynamodb");
    });
    await starts(["--pool-discovery", "registrations", "--registration-storage", "memory"]);
  });

  test("karmada and mcs need an API server to read from", async () => {
    using folder = temporaryFolder();
    const missing = join(folder.path, "missing");
    for (const mode of ["karmada", "mcs"]) {
      const args = ["--pool-discovery", mode];
      await expectStartupError(command, { args, env: { HOME: folder.path } }, "set KUBECONFIG");
      await expectStartupError(command, { args, env: { KUBECONFIG: missing } }, missing);
    }
  });

  test("an error at the start shows as it is in a terminal, whatever is in a path", async () => {
    const args = ["--tls-cert-path", "/no\u{1b}[2J\nsuch", "--tls-key-path", "key"];
    await expectStartupError(command, { args }, "cannot read /no\\u{1b}[2J\\u{a}such: ");
  });

  test("a flag under the heading of another mode is refused, whatever its value", async () => {
    const words = ["--pool-discovery", "karmada or mcs", "is registrations"];
    const args = kubernetesFlags.flatMap(withValue);
    await refusedEach(args, each(kubernetesFlags, ...words));
    await refusedEach([...args, "--pool-discovery=registrations"], each(kubernetesFlags, ...words));
    for (const mode of ["karmada", "mcs"]) {
      const args = ["--router", "a=http://a/", "--pool-discovery", mode];
      await refused(args, "--router:", "--pool-discovery registrations", `is ${mode}`);
      await refused(["--pool-discovery", mode, "--router", "a=http://a/"], "--router:");
    }
  });

  test("a DynamoDB flag is refused without that store, whatever its value", async () => {
    const words = ["--registration-storage", "dynamodb", "is memory"];
    const args = dynamodbFlags.flatMap(withValue);
    await refusedEach(args, each(dynamodbFlags, ...words));
    await refusedEach([...args, "--registration-storage=memory"], each(dynamodbFlags, ...words));
    await refused(withValue("lease-skew-secs"), "--lease-skew-secs", ...words);
  });

  test("every misplaced flag is named at once", async () => {
    const misplaced = [...kubernetesFlags, ...dynamodbFlags];
    await refusedEach(misplaced.flatMap(withValue), each(misplaced));
  });

  test("a flag that was not given is never refused", async () => {
    await forEachOf(["mcs", "karmada"], (mode) =>
      takenWithoutApiServer(["--pool-discovery", mode]),
    );
    await takenWithoutRegion(DYNAMODB);
    await starts([]);
  });

  test("flags where they belong are taken", async () => {
    await takenWithoutApiServer([...MCS, ...kubernetesFlags.flatMap(withValue)]);
    const rest = dynamodbFlags.filter((name) => name !== "dynamodb-table").flatMap(withValue);
    const env = { AWS_EC2_METADATA_DISABLED: "true" };
    const args = ["--listen", "127.0.0.1:0", ...DYNAMODB, ...rest];
    await expectStartupError(command, { args, env }, "no AWS credentials");
    await takenWithoutApiServer([...MCS, ...DYNAMODB, ...rest]);
  });

  test("--router-port is a name or a number as Kubernetes allows", async () => {
    await forEachOf(["0", "65536", "99999999999", "-1", "1.5", "A", "a_b", "-a", "a-"], (value) =>
      refused([...MCS, `--router-port=${value}`], "--router-port:").then(() => {}),
    );
    await forEachOf(["1", "65535", "http", "a", "http-2"], (value) =>
      takenWithoutApiServer([...MCS, `--router-port=${value}`]),
    );
  });

  test("the namespace and the Service of the router are names as Kubernetes allows", async () => {
    const names = ["router-namespace", "router-service"];
    const both = (value: string) => [...MCS, ...names.map((name) => `--${name}=${value}`)];
    const wrong = ["A", "a_b", "-a", "a-", "a.b", "a/b", "a b", "a".repeat(64)];
    await forEachOf(wrong, (value) => refusedEach(both(value), each(names)));
    await takenWithoutApiServer(both("a".repeat(63)));
  });

  test("the DynamoDB store needs a table with a legal name", async () => {
    const store = ["--registration-storage", "dynamodb"];
    await refused(store, "--dynamodb-table");
    await forEachOf(["ab", "a b", "a/b", "tablé", "a".repeat(256)], async (value) => {
      await refused([...store, `--dynamodb-table=${value}`], "--dynamodb-table:");
    });
    await forEachOf(["abc", "A_b-c.9", "a".repeat(255)], (value) =>
      takenWithoutRegion([...store, `--dynamodb-table=${value}`]),
    );
  });

  test("the seconds of the DynamoDB store keep their limits", async () => {
    const poll = "--dynamodb-poll-interval-secs";
    const grace = "--dynamodb-replication-grace-secs";
    const skew = "--lease-skew-secs";
    await refusedEach([...DYNAMODB, `${poll}=0`, `${grace}=86401`, `${skew}=86400`], {
      [poll]: [],
      [grace]: ["86400"],
      [skew]: [],
    });
    await refusedEach([...DYNAMODB, `${poll}=15`, `${skew}=15`, "--lease-duration-secs=15"], {
      [poll]: ["--lease-duration-secs"],
      [skew]: ["--lease-duration-secs"],
    });
    const most = [`${poll}=14`, `${skew}=14`, `${grace}=86400`, "--lease-duration-secs=15"];
    await takenWithoutRegion([...DYNAMODB, ...most]);
    await takenWithoutRegion([...DYNAMODB, `${poll}=1`, `${skew}=0`, `${grace}=0`]);
  });

  test("the limits between DynamoDB flags and the lease hold with that store", async () => {
    const short = ["--heartbeat-interval-secs=1", "--lease-duration-secs=2"];
    await refused([...DYNAMODB, ...short], "--dynamodb-poll-interval-secs", "--lease-skew-secs");
    await takenWithoutRegion([
      ...DYNAMODB,
      ...short,
      "--dynamodb-poll-interval-secs=1",
      "--lease-skew-secs=1",
    ]);
  });

  test("--dynamodb-endpoint-url is an http or https URL", async () => {
    await forEachOf(["localhost:8000", "ftp://a", "http://", "//a", "x"], async (value) => {
      await refused([...DYNAMODB, `--dynamodb-endpoint-url=${value}`], "--dynamodb-endpoint-url:");
    });
  });

  test("--router is an id, an equals sign and an http or https origin", async () => {
    const wrong = [
      "a",
      "http://a/",
      "=http://a/",
      " =http://a/",
      "\u3000=http://a/",
      "a=",
      "a==http://a/",
      "a=b=http://a/",
      "a=a",
      "a=a:8000",
      "a=//a",
      "a=http://",
      "a=http://a/x",
      "a=http://a/?",
      "a=http://a/?x",
      "a=http://a/#",
      "a=http://user@a/",
      "a=http://user:secret@a/",
      "a=http://a:65536/",
      "a=ftp://a/",
      "a=grpc://a:8000",
      "a\u0007b=http://a/",
    ];
    const { stderr } = await refused(wrong.map((value) => `--router=${value}`));
    expect(linesAbout(stderr, "--router"), stderr).toHaveLength(wrong.length);
    await refused(["--router", "a"], "--router:");
  });

  test("a router's id is not given twice", async () => {
    await refused(["--router", "a=http://a/", "--router", "a=http://b/"], "--router", "'a'");
    await refused(["--router", "a=http://a/", "--router", "a=http://a/"], "--router", "'a'");
    await starts(["--router", "a=http://a/", "--router", "b=http://a/"]);
  });

  test("no mistake on the command line shows a stack trace", async () => {
    const mistakes = [
      ["--"],
      ["--", "x"],
      ["--="],
      ["--=x"],
      ["-="],
      ["---listen"],
      ["--router=="],
    ];
    await forEachOf([...mistakes, ["-hx"], ["-Vx"], ["--help=1"], ["--version="]], async (args) => {
      await using child = new Process(command, { args: ["--listen=127.0.0.1:0", ...args] });
      // Some of these may be taken: then it serves, and has to be stopped.
      const serves = child.says(/serving/).then(
        () => child.kill("SIGTERM"),
        () => {},
      );
      await Promise.all([child.ended(), serves]);
      expectNoStackTrace(child.stderr);
    });
  });
}
