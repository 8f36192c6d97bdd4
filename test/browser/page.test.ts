import { afterAll, describe, setDefaultTimeout } from "bun:test";
import { closeBrowser, hasBrowser } from "./browser.ts";
import { accessibilityTests } from "./page/accessibility.ts";
import { contentsTests } from "./page/contents.ts";
import { filterTests } from "./page/filter.ts";
import { outageTests } from "./page/outages.ts";
import { safetyTests } from "./page/safety.ts";
import { updateTests } from "./page/updates.ts";

setDefaultTimeout(60_000);

describe.skipIf(!hasBrowser("the tests of the page"))("the page in a browser", () => {
  afterAll(closeBrowser);

  contentsTests();
  updateTests();
  outageTests();
  filterTests();
  accessibilityTests();
  safetyTests();
});
