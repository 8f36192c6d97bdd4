import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const PATH = Bun.which("chromium");

/** Whether there is a browser here. Says so where there is none, and which tests that skips. */
export function hasBrowser(tests: string): boolean {
  if (PATH !== null) return true;
  console.log(`skipped: ${tests} need the chromium command`);
  return false;
}

let running: Promise<Browser> | undefined;

/** Ends the browser, if there is one. Another starts when a tab is opened. */
export async function closeBrowser(): Promise<void> {
  const browser = running;
  running = undefined;
  await (await browser)?.close();
}

/** Chromium without a window, with a profile of its own, and with nothing to say to its maker. */
function launch(): Promise<Browser> {
  if (PATH === null) throw new Error("there is no chromium command");
  return chromium.launch({
    executablePath: PATH,
    args: [
      // Root can't have the sandbox, and few containers let anybody have it.
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A tab with a record of what it asked for and what it complained of. */
export interface Tab extends AsyncDisposable {
  readonly page: Page;
  /** The URLs that it asked for. */
  readonly requests: string[];
  /** What went to the console as an error or a warning, and what was thrown. */
  readonly complaints: string[];
}

export type TabOptions = BrowserContextOptions & {
  /** Whether timers wait until the test lets the time pass. */
  readonly fakeTime?: boolean;
};

/** Opens `url` in a tab with its own cookies, cache and settings. */
export async function openTab(
  url: string,
  { fakeTime = false, ...settings }: TabOptions = {},
): Promise<Tab> {
  running ??= launch();
  const context = await (await running).newContext(settings);
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  if (fakeTime) await page.clock.install({ time: new Date("2026-11-30T03:00:00Z") });
  await page.goto(url);
  return { page, requests, complaints, [Symbol.asyncDispose]: () => context.close() };
}
