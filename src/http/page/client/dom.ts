/**
 * Changes to the document that leave alone what stays as it is, so that an update disturbs neither
 * a selection nor the focus. Everything becomes text, never markup.
 */

/** The element with this id in the page. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page lacks #${id}`);
  return found;
}

/** A new element with attributes, and children or text in it. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElement {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

export interface Keyed<T> {
  /** One string for each item. */
  key(item: T): string;
  create(item: T): HTMLElement;
  update(element: HTMLElement, item: T): void;
}

const shown = new WeakMap<Element, Map<string, HTMLElement>>();

/** Makes the children of `parent` those of `items`, in their order. What has a key keeps its element. */
export function showAll<T>(parent: Element, items: readonly T[], keyed: Keyed<T>): void {
  const before = shown.get(parent) ?? new Map<string, HTMLElement>();
  const now = new Map<string, HTMLElement>();
  for (const item of items) {
    const key = keyed.key(item);
    const child = before.get(key) ?? keyed.create(item);
    keyed.update(child, item);
    now.set(key, child);
  }
  for (const [key, child] of before) if (!now.has(key)) child.remove();
  arrange(parent, [...now.values()]);
  shown.set(parent, now);
}

/** Puts the children in order. Moves the one that left its place, not all those that it passed. */
function arrange(parent: Element, children: readonly Element[]): void {
  let next = parent.firstElementChild;
  for (const child of children) {
    if (next !== null && next !== child && next.nextElementSibling === child) {
      next.remove();
      next = child;
    }
    if (next === child) next = child.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

/** Texts as the items of a list. */
export function showTexts(list: Element, texts: readonly string[]): void {
  showAll(list, [...texts.entries()], {
    key: ([at]) => String(at),
    create: () => element("li"),
    update: (item, [, text]) => setText(item, text),
  });
}

/** Names with their values, as the groups of a `dl`. */
export function showFacts(list: Element, facts: readonly (readonly [string, string])[]): void {
  showAll(list, facts, {
    key: ([name]) => name,
    create: ([name]) => element("div", {}, element("dt", {}, name), element("dd")),
    update(group, [, value]) {
      if (group.lastElementChild !== null) setText(group.lastElementChild, value);
    },
  });
}
