import { afterAll, beforeAll, describe, setDefaultTimeout } from "bun:test";
import { canMakeCertificates } from "../../support/certificates.ts";
import {
  cleanUp,
  compiledCommand,
  dynoxide,
  Emulator,
  isInstalled,
  sourceCommand,
} from "../../support/dynamodb.ts";
import { kubernetesPrograms } from "../../support/kube-apiserver.ts";
import { faultTests } from "./faults.ts";
import { formTests, handMadeTests, joinTests, routerFlagTests } from "./joins.ts";
import { metricsTests } from "./metrics.ts";
import { pauseTests } from "./pauses.ts";
import { realApiServerTests } from "./real-api-server.ts";
import { rotationTests, startUpTests } from "./start-up.ts";

setDefaultTimeout(120_000);

const hasDynamoDB = isInstalled(dynoxide);
const canRun = canMakeCertificates("the tests of karmada and mcs mode");
const programs = kubernetesPrograms();
let emulator: Emulator;
beforeAll(async () => {
  if (hasDynamoDB) emulator = await Emulator.start(dynoxide);
});
afterAll(cleanUp);

// Real processes, which wait far more than they work: so all of these tests are in one file, and
// many of them run at once.
describe.skipIf(!canRun)("karmada and mcs mode", () => {
  // The longest first.
  rotationTests(sourceCommand);
  describe("while the API server is out of order", () => faultTests());
  describe("over the memory store", () => {
    joinTests(sourceCommand, undefined);
    formTests(sourceCommand);
    routerFlagTests(sourceCommand);
    handMadeTests(sourceCommand);
  });
  describe.skipIf(!hasDynamoDB)("over the DynamoDB store", () => {
    joinTests(sourceCommand, () => emulator);
  });
  describe("a start", () => startUpTests(sourceCommand));
  describe("a pause", () => pauseTests(sourceCommand));
  metricsTests(sourceCommand);
  describe("in the compiled file", () => {
    joinTests(compiledCommand, undefined);
    formTests(compiledCommand);
    describe("a start", () => startUpTests(compiledCommand));
    metricsTests(compiledCommand);
  });

  if (programs !== undefined) {
    describe("against kube-apiserver", () => realApiServerTests(compiledCommand, programs));
  }
});
