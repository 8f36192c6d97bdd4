import { element, setText, showTexts } from "./dom.ts";
import type { PoolState } from "./explanation.ts";
import { idOf } from "./select.ts";
import { type Column, Table } from "./table.ts";
import { ago, count, lasting, UNKNOWN } from "./words.ts";

const COLUMNS: readonly Column<PoolState>[] = [
  {
    title: "State",
    show: (cell, { listed }) => setText(child(cell, badge), listed ? "Listed" : "Not listed"),
  },
  {
    title: "Pool",
    style: "pool",
    isHeader: true,
    show: (cell, { key }) => {
      // A row is one pool's for good.
      if (cell.firstChild !== null) return;
      const slash = () => element("span", { class: "slash" }, "/");
      cell.append(
        element("span", { class: "id" }, key.cluster_id),
        slash(),
        element("span", { class: "id" }, key.namespace),
        slash(),
        element("span", { class: "id name" }, key.dgd_name),
      );
    },
  },
  {
    title: "Why",
    style: "why",
    show: (cell, { reasons }) => showTexts(child(cell, list), reasons),
  },
  text("Registered", "number", (pool) => ago(pool.last_registered_s_ago)),
  text("Lease left", "number", (pool) => lasting(pool.lease_left_s)),
  text("Written in", "region", (pool) => pool.written_in ?? UNKNOWN),
  text("Relays", "number", (pool) => count(pool.relays_ready)),
  text("Frontends", "number", (pool) => count(pool.frontends_ready)),
  {
    title: "Disagreements",
    style: "disagreements",
    show: (cell, { disagreements }) => {
      setText(cell, disagreementsText(disagreements));
      cell.classList.toggle("attention", (disagreements?.count ?? 0) > 0);
    },
  },
];

/** The columns that only some modes or stores have values for. */
const OPTIONAL = {
  "Written in": (pool: PoolState) => pool.written_in,
  Relays: (pool: PoolState) => pool.relays_ready,
  Frontends: (pool: PoolState) => pool.frontends_ready,
} as const;

/** The titles of the columns that have a value for none of `pools`. */
export function emptyColumns(pools: readonly PoolState[]): string[] {
  return Object.entries(OPTIONAL)
    .filter(([, value]) => pools.every((pool) => value(pool) === null))
    .map(([title]) => title);
}

export function poolTable(table: HTMLTableElement): Table<PoolState> {
  return new Table(table, COLUMNS, {
    key: idOf,
    update(row, pool) {
      const state = pool.listed ? "listed" : "unlisted";
      // A row that is new says nothing of a change.
      if (row.dataset.state !== undefined && row.dataset.state !== state) flash(row);
      row.dataset.state = state;
      row.classList.toggle("listed", pool.listed);
      row.classList.toggle("unlisted", !pool.listed);
    },
  });
}

function text(title: string, style: string, textOf: (pool: PoolState) => string) {
  return {
    title,
    style,
    show: (cell: HTMLElement, pool: PoolState) => setText(cell, textOf(pool)),
  };
}

function disagreementsText(disagreements: PoolState["disagreements"]): string {
  if (disagreements === null || disagreements.count === 0)
    return count(disagreements?.count ?? null);
  return `${count(disagreements.count)}: ${disagreements.fields.join(", ")}`;
}

const badge = () => element("span", { class: "badge" });
const list = () => element("ul");

function child(cell: HTMLElement, create: () => HTMLElement): Element {
  const made = cell.firstElementChild ?? create();
  if (made.parentNode === null) cell.append(made);
  return made;
}

/** Draws the eye to a row for a moment, where motion is welcome. */
function flash(row: HTMLElement): void {
  row.classList.add("changed");
  row.addEventListener("animationend", () => row.classList.remove("changed"), { once: true });
}
