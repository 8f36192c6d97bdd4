import { byId, setText, showFacts } from "./dom.ts";
import type { SlicesState, TableState } from "./explanation.ts";
import { Table } from "./table.ts";
import { ago, count, counted, leftOutReason, milliseconds } from "./words.ts";

interface LeftOut {
  readonly reason: string;
  readonly count: number;
  readonly names: readonly string[];
}

/** Why slices are left out that were probably meant to count. */
const MEANT_TO_COUNT: ReadonlySet<string> = new Set(["unknown-cluster", "fqdn"]);

/** Which EndpointSlices are used, and which are not. */
export class SlicesSection {
  readonly #section = byId("slices", HTMLElement);
  readonly #used = byId("slices-used", HTMLElement);
  readonly #table: HTMLTableElement;
  readonly #rows: Table<LeftOut>;

  constructor() {
    this.#table = byId("slice-table", HTMLTableElement);
    this.#rows = new Table<LeftOut>(
      this.#table,
      [
        {
          title: "Left out because",
          isHeader: true,
          show: (cell, { reason }) => {
            setText(cell, leftOutReason(reason));
            cell.classList.toggle("attention", MEANT_TO_COUNT.has(reason));
          },
        },
        { title: "Slices", style: "number", show: (cell, { count: n }) => setText(cell, count(n)) },
        { title: "Names", style: "names", show: (cell, item) => setText(cell, namesOf(item)) },
      ],
      { key: ({ reason }) => reason },
    );
  }

  show(slices: SlicesState | null): void {
    this.#section.hidden = slices === null;
    if (slices === null) return;
    const leftOut = Object.entries(slices.left_out)
      .map(([reason, of]) => ({ reason, ...of }))
      .filter((of) => of.count > 0);
    const total = leftOut.reduce((sum, of) => sum + of.count, 0);
    setText(this.#used, `${counted(slices.used, "slice")} used, ${count(total)} left out`);
    this.#table.hidden = leftOut.length === 0;
    this.#rows.show(leftOut);
  }
}

function namesOf({ count: total, names }: LeftOut): string {
  const more = total - names.length;
  return names.join(", ") + (more > 0 && names.length > 0 ? `, and ${count(more)} more` : "");
}

/** How the table in DynamoDB was last read. */
export class TableSection {
  readonly #section = byId("table", HTMLElement);
  readonly #facts = byId("table-facts", HTMLElement);

  show(table: TableState | null): void {
    this.#section.hidden = table === null;
    if (table === null) return;
    showFacts(this.#facts, [
      ["Last read", ago(table.last_read_s_ago)],
      ["Took", milliseconds(table.last_read_took_ms)],
      ["Items", count(table.items)],
      ["Pages", count(table.pages)],
      ["Last error", table.last_error ?? "none"],
    ]);
  }
}
