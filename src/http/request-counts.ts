import type { Clock } from "../runtime/clock.ts";
import { Histogram } from "../runtime/histogram.ts";
import { type Answer, responseOf } from "./answer.ts";
import type { MethodHandler, RequestServer } from "./routes.ts";

/** The route of requests for paths that there are not, and the method of any that is not below. */
export const OTHER = "other";

/** The methods that are told apart; what else a client sends is one more. */
const METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);

/** What became of the requests of one method for one route. */
export interface RequestSeries {
  readonly route: string;
  readonly method: string;
  /** How many were answered with each status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** From when the headers of a request were there until its answer was, not until that was sent. */
  readonly duration: Histogram;
}

interface MutableSeries extends RequestSeries {
  readonly statuses: Map<number, number>;
}

/** What Bun's server calls with a request. */
export type Route = (request: Request, server: RequestServer) => Response | Promise<Response>;

/**
 * Counts requests, and how long they took, by what the service itself has a name for: nothing that
 * a client sends makes a series of its own.
 */
export class RequestCounts {
  readonly #clock: Clock;
  readonly #byRoute = new Map<string, Map<string, MutableSeries>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The handler of a route, counted. What it throws is answered by `answerTo`. */
  counted(route: string, handler: MethodHandler, answerTo: (error: unknown) => Answer): Route {
    const clock = this.#clock;
    const byMethod = this.#ofRoute(route);
    const count = (method: string, { status }: Answer): Histogram => {
      const series = byMethod.get(method) ?? addSeries(byMethod, route, method);
      series.statuses.set(status, (series.statuses.get(status) ?? 0) + 1);
      return series.duration;
    };
    const countLater = async (method: string, promise: Promise<Answer>, beganAtMs: number) => {
      const answer = await promise.catch(answerTo);
      const duration = count(method, answer);
      if (answer.mayHaveWaited !== true) duration.observe(clock.monotonicMs() - beganAtMs);
      return responseOf(answer);
    };
    return (request, server) => {
      const beganAtMs = clock.monotonicMs();
      const { method } = request;
      let answer: Answer;
      try {
        const given = handler(request, server, method);
        if (given instanceof Promise) return countLater(method, given, beganAtMs);
        answer = given;
      } catch (error) {
        answer = answerTo(error);
      }
      count(method, answer).observe(clock.monotonicMs() - beganAtMs);
      return responseOf(answer);
    };
  }

  /** How many requests of one method for a route were answered with each status. */
  statuses(route: string, method: string): ReadonlyMap<number, number> {
    return this.#byRoute.get(route)?.get(method)?.statuses ?? new Map();
  }

  /** What there was to count so far. */
  series(): RequestSeries[] {
    return [...this.#byRoute.values()].flatMap((byMethod) => [...byMethod.values()]);
  }

  #ofRoute(route: string): Map<string, MutableSeries> {
    const known = this.#byRoute.get(route);
    if (known !== undefined) return known;
    const byMethod = new Map<string, MutableSeries>();
    this.#byRoute.set(route, byMethod);
    // There before the first request: a rate is only known from the second value on.
    if (route !== OTHER) addSeries(byMethod, route, "GET").statuses.set(200, 0);
    return byMethod;
  }
}

function addSeries(
  byMethod: Map<string, MutableSeries>,
  route: string,
  requested: string,
): MutableSeries {
  const method = METHODS.has(requested) ? requested : OTHER;
  const known = byMethod.get(method);
  if (known !== undefined) return known;
  const series = { route, method, statuses: new Map(), duration: new Histogram() };
  byMethod.set(method, series);
  return series;
}
