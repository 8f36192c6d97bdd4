import { element, type Keyed, showAll } from "./dom.ts";

export interface Column<T> {
  readonly title: string;
  /** The class of its cells. */
  readonly style?: string;
  /** Whether it names the row. */
  readonly isHeader?: boolean;
  show(cell: HTMLElement, item: T): void;
}

/** A table whose rows keep their elements from one update to the next. */
export class Table<T> {
  readonly #table: HTMLTableElement;
  readonly #columns: readonly Column<T>[];
  readonly #rows: Keyed<T>;
  readonly #hidden = new Set<string>();

  constructor(
    table: HTMLTableElement,
    columns: readonly Column<T>[],
    rows: { readonly key: (item: T) => string; update?(row: HTMLElement, item: T): void },
  ) {
    this.#table = table;
    this.#columns = columns;
    this.#rows = {
      key: rows.key,
      create: () => element("tr", { role: "row" }, ...columns.map(cellOf)),
      update: (row, item) => {
        for (const [at, column] of columns.entries()) {
          const cell = row.children[at];
          if (!(cell instanceof HTMLElement)) continue;
          column.show(cell, item);
          cell.hidden = this.#hidden.has(column.title);
        }
        rows.update?.(row, item);
      },
    };
    table.setAttribute("role", "table");
    for (const group of [table.tHead, ...table.tBodies]) group?.setAttribute("role", "rowgroup");
    table.tHead?.append(element("tr", { role: "row" }, ...columns.map(headerOf)));
  }

  /** Shows `items`, without the columns that have nothing to tell. */
  show(items: readonly T[], hidden: readonly string[] = []): void {
    this.#hidden.clear();
    for (const title of hidden) this.#hidden.add(title);
    for (const [at, header] of [...(this.#table.tHead?.rows[0]?.cells ?? [])].entries()) {
      header.hidden = this.#hidden.has(this.#columns[at]?.title ?? "");
    }
    const body = this.#table.tBodies[0];
    if (body !== undefined) showAll(body, items, this.#rows);
  }
}

// The roles are those that the elements have by themselves, until a style sheet lays them out as
// something else than a table, as ours does on narrow screens.

function headerOf<T>({ title, style = "" }: Column<T>): HTMLElement {
  return element("th", { role: "columnheader", scope: "col", class: style }, title);
}

function cellOf<T>({ title, style = "", isHeader = false }: Column<T>): HTMLElement {
  return isHeader
    ? element("th", { role: "rowheader", scope: "row", class: style })
    : element("td", { role: "cell", class: style, "data-label": title });
}
