import { afterAll, describe, setDefaultTimeout } from "bun:test";
import { endAll, Service } from "../support/service.ts";
import { blackBoxSuite } from "./black-box.ts";
import { processSuite } from "./process.ts";

/** Both suites against what `command` starts. */
export async function targetSuite(name: string, command: readonly string[]): Promise<void> {
  setDefaultTimeout(60_000);
  afterAll(endAll);
  const shared = await Service.start(command, { args: ["--lease-duration-secs", "86400"] });
  describe(name, () => {
    describe("over HTTP", () => blackBoxSuite(shared.url));
    processSuite(command);
  });
}
