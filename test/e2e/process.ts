import { describe } from "bun:test";
import { abuseTests } from "./process/abuse.ts";
import { clientCertificateTests } from "./process/client-certificates.ts";
import { commandLineTests } from "./process/command-line.ts";
import { environmentTests } from "./process/environment.ts";
import { freshServiceTests } from "./process/fresh-service.ts";
import { leaseTests } from "./process/leases.ts";
import { listeningTests } from "./process/listening.ts";
import { metricsTests } from "./process/metrics.ts";
import { pauseTests } from "./process/pauses.ts";
import { signalTests } from "./process/signals.ts";
import { timeoutTests } from "./process/timeouts.ts";
import { tlsTests } from "./process/tls.ts";
import { tlsReloadTests } from "./process/tls-reload.ts";
import { waitingTests } from "./process/waiting.ts";

/**
 * What shows only where the service is started, stopped and signalled. `command` starts it; the
 * tests add flags to it.
 */
export function processSuite(command: readonly string[]): void {
  describe("the command line", () => commandLineTests(command));
  describe("the environment", () => environmentTests(command));
  describe("a fresh service", () => freshServiceTests(command));
  describe("listening", () => listeningTests(command));
  describe("TLS", () => tlsTests(command));
  describe("abuse", () => abuseTests(command));
  describe("client certificates", () => clientCertificateTests(command));
  describe("TLS files that change", () => tlsReloadTests(command));
  // These wait far more than they work, so all of them run at once.
  // The longest come first, since no more than twenty do.
  describe("time-outs", () => timeoutTests(command));
  describe("waiting", () => waitingTests(command));
  describe("pauses", () => pauseTests(command));
  describe("signals", () => signalTests(command));
  describe("leases", () => leaseTests(command));
  describe("metrics", () => metricsTests(command));
}
