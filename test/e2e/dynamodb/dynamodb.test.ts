import { afterAll, beforeAll, describe, setDefaultTimeout } from "bun:test";
import {
  cleanUp,
  compiledCommand,
  dynalite,
  dynoxide,
  Emulator,
  isInstalled,
  sourceCommand,
} from "../../support/dynamodb.ts";
import { credentialTests } from "./credentials.ts";
import { faultTests } from "./faults.ts";
import { metricsTests } from "./metrics.ts";
import { oddItemTests } from "./odd-items.ts";
import { pauseTests } from "./pauses.ts";
import { readAndWriteTests } from "./reads-and-writes.ts";
import { relayTests } from "./relays.ts";
import { listingTests, replicaTests } from "./replicas.ts";
import { startUpTests } from "./start-up.ts";

setDefaultTimeout(120_000);

afterAll(cleanUp);

const hasOther = isInstalled(dynalite);

// Real processes, which wait far more than they work: so all of these tests are in one file, and
// many of them run at once.
describe.skipIf(!isInstalled(dynoxide))("the DynamoDB store", () => {
  let emulator: Emulator;
  let other: Emulator;
  beforeAll(async () => {
    emulator = await Emulator.start(dynoxide);
    if (hasOther) other = await Emulator.start(dynalite);
  });
  const overDynoxide = () => emulator;

  describe("while DynamoDB", () => faultTests(overDynoxide));
  describe("a start", () => startUpTests(overDynoxide));
  describe("a pause", () => pauseTests(sourceCommand, overDynoxide));
  describe("relays of one pool that use different replicas", () => relayTests(overDynoxide));
  describe("an item of the table", () => oddItemTests(overDynoxide));
  describe("the table", () => readAndWriteTests(overDynoxide));
  describe("a list", () => listingTests(overDynoxide));
  describe("replicas", () => replicaTests(sourceCommand, overDynoxide));
  metricsTests(sourceCommand, overDynoxide);
  describe("in the compiled file", () => {
    replicaTests(compiledCommand, overDynoxide);
    credentialTests(compiledCommand, overDynoxide);
    metricsTests(compiledCommand, overDynoxide);
  });
  // A second opinion on what DynamoDB takes and answers.
  describe.skipIf(!hasOther)("over another emulator", () => {
    replicaTests(sourceCommand, () => other);
  });
});
