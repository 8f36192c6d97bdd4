import { byId, setText, showFacts, showTexts } from "./dom.ts";
import type { Explanation, ServiceState } from "./explanation.ts";
import { count, counted, duration, timeOfDay } from "./words.ts";

/** The top of the page: what answers, whether its list is complete, and whether it answers at all. */
export class Status {
  readonly #outage = byId("outage", HTMLElement);
  readonly #updated = byId("updated", HTMLElement);
  readonly #main = byId("main", HTMLElement);
  readonly #state = byId("state", HTMLElement);
  readonly #headline = byId("headline", HTMLElement);
  readonly #tally = byId("tally", HTMLElement);
  readonly #reasons = byId("reasons", HTMLElement);
  readonly #facts = byId("service", HTMLElement);
  #answeredAt: Date | undefined;
  /** Since when it has not answered. */
  #outageSince: Date | undefined;

  answered({ service, pools, pools_left_out }: Explanation): void {
    const now = new Date();
    if (this.#outageSince !== undefined) this.#endOutage(now);
    this.#answeredAt = now;
    setText(this.#updated, `Updated ${timeOfDay(now)}`);
    showFacts(this.#facts, factsOf(service));

    const listed = pools.filter((pool) => pool.listed).length;
    this.#state.hidden = false;
    this.#state.classList.toggle("incomplete", !service.complete);
    setText(
      this.#headline,
      service.complete
        ? "The list is complete"
        : "The list is not complete: live pools may be missing",
    );
    setText(this.#tally, tallyOf(listed, pools.length - listed, pools_left_out));
    showTexts(this.#reasons, service.reasons);
    document.title = `${service.complete ? "" : "Not complete · "}Global Discovery Service`;
  }

  failed(reason: string): void {
    this.#outageSince ??= this.#answeredAt ?? new Date();
    this.#outage.className = "outage";
    const what = this.#answeredAt === undefined ? "" : " What is below is from then.";
    // The same words for as long as it lasts, since each change of them is read aloud.
    setText(
      this.#outage,
      `The service can't be reached since ${timeOfDay(this.#outageSince)}: ${reason}.${what}`,
    );
    this.#main.classList.add("stale");
    document.title = "No answer · Global Discovery Service";
  }

  #endOutage(now: Date): void {
    this.#outageSince = undefined;
    // For those who hear the page; the others see that the warning is gone.
    this.#outage.className = "unseen";
    setText(this.#outage, `The service answers again since ${timeOfDay(now)}.`);
    this.#main.classList.remove("stale");
  }
}

function tallyOf(listed: number, unlisted: number, leftOut = 0): string {
  const are = (number: number) => (number === 1 ? "is" : "are");
  let text = `${counted(listed, "pool")} ${are(listed)} listed`;
  if (unlisted > 0) text += `; ${counted(unlisted, "known pool")} ${are(unlisted)} not`;
  if (leftOut > 0)
    text += `; ${count(leftOut)} more ${are(leftOut)} known, but too many to tell of`;
  return `${text}.`;
}

function factsOf(service: ServiceState): (readonly [string, string])[] {
  return [
    ["Version", service.version],
    ["Mode", service.mode],
    ["Store", service.store],
    ["Up", duration(service.uptime_s)],
  ];
}
