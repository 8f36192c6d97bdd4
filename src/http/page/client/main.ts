import { byId, setText } from "./dom.ts";
import { Poller } from "./poller.ts";
import { PoolsSection } from "./pools-section.ts";
import { SlicesSection, TableSection } from "./sections.ts";
import { Status } from "./status.ts";

const status = new Status();
const pools = new PoolsSection();
const slices = new SlicesSection();
const table = new TableSection();

const poller = new Poller({
  answered(explanation) {
    status.answered(explanation);
    pools.show(explanation.pools);
    slices.show(explanation.slices);
    table.show(explanation.table);
  },
  failed: (reason) => status.failed(reason),
});

const pause = byId("pause", HTMLButtonElement);
pause.hidden = false;
pause.addEventListener("click", () => {
  poller.isPaused = !poller.isPaused;
  setText(pause, poller.isPaused ? "Resume updates" : "Pause updates");
});

poller.start();
