/** Makes the pictures of the page that the documents show. */
import { join } from "node:path";
import { busyNight } from "../fixtures/explanation.ts";
import { projectRoot } from "../support/service.ts";
import { closeBrowser } from "./browser.ts";
import { open } from "./open-page.ts";
import { PageServer } from "./page-server.ts";

await using server = new PageServer(busyNight());
for (const colorScheme of ["light", "dark"] as const) {
  await using tab = await open(server, {
    colorScheme,
    viewport: { width: 1360, height: 800 },
    fakeTime: true,
  });
  await tab.page.screenshot({ path: join(projectRoot, `docs/images/page-${colorScheme}.png`) });
}
await closeBrowser();
