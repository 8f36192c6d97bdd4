import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A credential plugin as a script, which a test tells what to hand out. */
export class TestPlugin {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    writeFileSync(this.#at("runs"), "");
    writeFileSync(
      this.command,
      `#!/bin/sh
cd "$(dirname "$0")"
echo "$ROLE $KUBERNETES_EXEC_INFO" >> runs
. ./does
`,
    );
    chmodSync(this.command, 0o755);
  }

  get command(): string {
    return this.#at("plugin");
  }

  /** The user of a kubeconfig that runs it. */
  get user() {
    return {
      exec: {
        apiVersion: "client.authentication.k8s.io/v1",
        command: this.command,
        env: [{ name: "ROLE", value: "reader" }],
        interactiveMode: "Never",
      },
    };
  }

  /** From now on it hands this out. */
  handsOut(status: Readonly<Record<string, unknown>>): void {
    const written = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status,
    };
    writeFileSync(this.#at("credential"), JSON.stringify(written));
    this.does("cat credential");
  }

  /** From now on it runs this, in the words of a shell. */
  does(script: string): void {
    writeFileSync(this.#at("does"), `${script}\n`);
  }

  /** What the environment held each time that it ran. */
  get runs(): string[] {
    return readFileSync(this.#at("runs"), "utf8").split("\n").slice(0, -1);
  }

  #at(name: string): string {
    return join(this.#folder, name);
  }
}
