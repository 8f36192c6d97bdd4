import type { Page } from "playwright-core";

/** A text that is to be seen, and the contrast of it with what is behind it (WCAG 2.2, 1.4.3). */
export interface Contrast {
  readonly text: string;
  readonly ratio: number;
}

/** The contrast of each text of a page, as the styles that are in force have it. */
export function contrasts(page: Page): Promise<Contrast[]> {
  return page.evaluate(() => {
    type Color = readonly [red: number, green: number, blue: number, alpha: number];

    const parse = (color: string): Color => {
      const [red = 0, green = 0, blue = 0, alpha = 1] = (color.match(/[\d.]+/g) ?? []).map(Number);
      return [red, green, blue, alpha];
    };
    const over = (top: Color, below: Color): Color => {
      const mix = (a: number, b: number) => a * top[3] + b * (1 - top[3]);
      return [mix(top[0], below[0]), mix(top[1], below[1]), mix(top[2], below[2]), 1];
    };
    const isGray = (element: Element) => element.closest(".stale") !== null;
    const gray = ([red, green, blue, alpha]: Color): Color => {
      const value = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      return [value, value, value, alpha];
    };
    const luminance = ([red, green, blue]: Color) => {
      const linear = (channel: number) => {
        const value = channel / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      };
      return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    };
    const backgroundOf = (element: Element | null): Color => {
      if (element === null) return [255, 255, 255, 1];
      const own = parse(getComputedStyle(element).backgroundColor);
      return own[3] === 1 ? own : over(own, backgroundOf(element.parentElement));
    };
    const ratioOf = (element: Element, color: string) => {
      const background = backgroundOf(element);
      const pair = [over(parse(color), background), background] as const;
      const [a, b] = (isGray(element) ? pair.map(gray) : pair).map(luminance);
      const [dark = 0, light = 0] = [a ?? 0, b ?? 0].sort((x, y) => x - y);
      return (light + 0.05) / (dark + 0.05);
    };

    const found: Contrast[] = [];
    for (const element of document.querySelectorAll("body *")) {
      const isSeen =
        element.checkVisibility() && element.closest(".unseen, caption, noscript") === null;
      if (!isSeen) continue;
      const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
      const text = own
        .map((node) => node.textContent)
        .join("")
        .trim();
      if (text !== "")
        found.push({ text, ratio: ratioOf(element, getComputedStyle(element).color) });
      if (element instanceof HTMLInputElement && element.placeholder !== "") {
        const { color } = getComputedStyle(element, "::placeholder");
        found.push({ text: element.placeholder, ratio: ratioOf(element, color) });
      }
      const label = getComputedStyle(element, "::before");
      if (/^attr|"\w/.test(label.content)) {
        found.push({ text: label.content, ratio: ratioOf(element, label.color) });
      }
    }
    return found;
  });
}
