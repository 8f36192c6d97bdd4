import { byId, setText } from "./dom.ts";
import type { PoolState } from "./explanation.ts";
import { emptyColumns, poolTable } from "./pool-table.ts";
import { type Selection, select } from "./select.ts";
import { count } from "./words.ts";

/** The pools that the filter lets through. */
export class PoolsSection {
  readonly #section = byId("pools", HTMLElement);
  readonly #words = byId("words", HTMLInputElement);
  readonly #unlisted = byId("unlisted", HTMLInputElement);
  readonly #shown = byId("shown", HTMLElement);
  readonly #nothing = byId("nothing", HTMLElement);
  readonly #table = byId("pool-table", HTMLTableElement);
  readonly #rows = poolTable(this.#table);
  #pools: readonly PoolState[] = [];

  constructor() {
    for (const input of [this.#words, this.#unlisted]) {
      input.addEventListener("input", () => this.#render());
    }
  }

  show(pools: readonly PoolState[]): void {
    this.#pools = pools;
    this.#section.hidden = false;
    this.#render();
  }

  #render(): void {
    const filter = { words: this.#words.value, onlyUnlisted: this.#unlisted.checked };
    const selection = select(this.#pools, filter);
    setText(this.#shown, shownText(selection, this.#pools.length));
    this.#table.hidden = selection.matching === 0;
    this.#nothing.hidden = selection.matching > 0;
    setText(this.#nothing, this.#pools.length === 0 ? "No pool is known." : "No pool matches.");
    this.#rows.show(selection.rows, emptyColumns(this.#pools));
  }
}

function shownText({ rows, matching }: Selection, known: number): string {
  if (rows.length < matching) {
    return `The first ${count(rows.length)} of ${count(matching)}; filter to see others`;
  }
  return matching === known ? `All ${count(known)}` : `${count(matching)} of ${count(known)}`;
}
