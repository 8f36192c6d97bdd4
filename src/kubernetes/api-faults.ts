import { messageOf } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import { oneLine, quoted } from "../runtime/text.ts";
import type { ApiServer } from "./api-server.ts";
import type { Credentials } from "./credentials.ts";
import { type Status, statusOf } from "./decode.ts";
import { ApiError, type ApiFault } from "./slice-api.ts";

export type Verb = "list" | "watch";

/** Puts into words what goes wrong with one API server, and what to mend. */
export class ApiFaults {
  readonly #server: ApiServer;
  readonly #credentials: Credentials;
  readonly #at: string;

  constructor(server: ApiServer, credentials: Credentials) {
    this.#server = server;
    this.#credentials = credentials;
    this.#at = `the API server at ${server.url}`;
  }

  /** The API server answered with another status than 200. */
  ofResponse(verb: Verb, httpStatus: number, location: string | null, body: string): ApiError {
    if (httpStatus >= 300 && httpStatus < 400) {
      const where = location === null ? "" : ` to ${quoted(location)}`;
      return this.#error(
        "error",
        `redirects${where}, which is not followed; name the last address as server`,
      );
    }
    const { code, ...said } = statusOf(jsonOrNothing(body));
    const { message } = said;
    // What is no Status comes from a proxy or a load balancer, or from a server that is none.
    const words = message === "" && code === undefined ? body.trim() : message;
    return this.#ofStatus(verb, { ...said, code: httpStatus, message: words });
  }

  /** The API server sent an ERROR event. */
  ofEvent(verb: Verb, status: Status): ApiError {
    const known = status.reason === "Expired" || status.reason === "Gone" ? 410 : status.code;
    return this.#ofStatus(verb, { ...status, code: known });
  }

  /** The API server sent what can't be read. */
  ofContent(verb: Verb, problem: unknown): ApiError {
    const words = oneLine(messageOf(problem), limits.repeatedChars);
    return this.#error(
      "error",
      `answered ${verb} with something that can't be read (${words}); is it one, and no other server?`,
    );
  }

  /** An answer broke off. */
  ofBody(verb: Verb, problem: unknown): ApiError {
    const words = codeOf(problem) || oneLine(messageOf(problem), limits.repeatedChars);
    return this.#error("error", `broke its answer to ${verb} off (${words})`);
  }

  /** There was no answer. */
  ofConnection(verb: Verb, problem: unknown): ApiError {
    const { foundIn, serverName, proxyUrl } = this.#server;
    const { host, hostname } = new URL(this.#server.url);
    const code = codeOf(problem);
    const through = proxyUrl === undefined ? "" : ` through the proxy of the kubeconfig`;
    if (UNKNOWN_AUTHORITY.has(code)) {
      return this.#error(
        "error",
        `shows a certificate that the CA of ${foundIn} has not signed (${code}); mend ` +
          "certificate-authority-data, or the address",
      );
    }
    switch (code) {
      case "CERT_HAS_EXPIRED":
        return this.#error(
          "error",
          `shows a certificate that has expired, or its CA's has; renew it there`,
        );
      case "CERT_NOT_YET_VALID":
        return this.#error(
          "error",
          "shows a certificate that is not valid yet; check the clocks of both machines",
        );
      case "ERR_TLS_CERT_ALTNAME_INVALID":
        return this.#error(
          "error",
          `shows a certificate that does not hold the name ${serverName ?? hostname}; use an ` +
            "address that it holds, or set tls-server-name",
        );
      case "ECONNREFUSED":
        return this.#error(
          "error",
          `can't be reached${through}: ${proxyUrl === undefined ? host : new URL(proxyUrl).host} ` +
            "refuses the connection; is it running, and is the address right?",
        );
      case "ENOTFOUND":
      case "EAI_AGAIN":
        return this.#error(
          "error",
          `can't be reached${through}: DNS does not resolve the name (${code}); check the ` +
            "address and the DNS",
        );
      case "EPROTO":
      case "ECONNRESET":
        return this.#broken(verb, code);
      default: {
        const words = oneLine(messageOf(problem), limits.repeatedChars);
        return this.#error("error", `can't be reached${through} for ${verb} (${words})`);
      }
    }
  }

  /**
   * A TLS alert is not shown: a server that refuses the client's certificate, or misses it, seems to
   * break off.
   */
  #broken(verb: Verb, code: string): ApiError {
    const { what, certificateProblem } = this.#credentials;
    if (certificateProblem !== undefined) {
      return this.#error(
        "denied",
        `breaks off ${verb} (${code}), and ${certificateProblem}; renew ${what}`,
      );
    }
    return this.#error(
      "error",
      code === "EPROTO"
        ? `does not finish the TLS handshake (${code}); either it speaks no TLS on this port, or it ` +
            `refuses the client's certificate or misses one; it was shown ${what}`
        : `closes the connection instead of answering ${verb} (${code}); where that goes on, it may ` +
            `refuse the client's certificate; it was shown ${what}`,
    );
  }

  #ofStatus(verb: Verb, { code, reason, message }: Status): ApiError {
    const words = [reason, oneLine(message, limits.repeatedChars)].filter((part) => part !== "");
    const said = words.length === 0 ? "" : ` (${words.join(": ")})`;
    switch (code) {
      case 401: {
        const { what, certificateProblem } = this.#credentials;
        const problem = certificateProblem === undefined ? "" : `: ${certificateProblem}`;
        return this.#error(
          "denied",
          `does not accept ${what}, with 401${problem}; renew it${said}`,
        );
      }
      case 403:
        return this.#error(
          "denied",
          `forbids ${verb} on endpointslices.discovery.k8s.io in all namespaces, with 403; grant get, ` +
            `list and watch on them in a ClusterRole, and bind it to this user${said}`,
        );
      case 404:
        return this.#error(
          "error",
          "has no endpointslices in discovery.k8s.io/v1, with 404; it has to be Kubernetes 1.21 or " +
            `later, and the server's URL must hold the path before /apis, if there is one${said}`,
        );
      case 410:
        return this.#error(
          "expired",
          `no longer has the version that ${verb} asked for, with 410${said}`,
        );
      case 429:
        return this.#error("error", `asks for fewer requests, with 429 to ${verb}${said}`);
      default:
        return this.#error(
          "error",
          `failed at ${verb}${code === undefined ? "" : ` with ${code}`}${said}`,
        );
    }
  }

  #error(fault: ApiFault, words: string): ApiError {
    return new ApiError(fault, `${this.#at} ${words}`);
  }
}

const UNKNOWN_AUTHORITY = new Set([
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "INVALID_CA",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function codeOf(problem: unknown): string {
  return problem instanceof Error && "code" in problem ? String(problem.code) : "";
}

function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
