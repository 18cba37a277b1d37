// The dashboard of a running greenroom.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./base.css";
import "./app.css";
import { Advice } from "./advice";
import { Events } from "./events";
import { ZONE } from "./format";
import { Hottest } from "./hottest";
import { Inputs } from "./inputs";
import { Letters } from "./letters";
import { Locked } from "./locked";
import { Flow } from "./map";
import { startMarking } from "./marked";
import { Parked } from "./parked";
import { Pools } from "./pools";
import { goTo, startLinks } from "./sections";
import { Help, useShortcuts } from "./shortcuts";
import { Figures, Gone, Overview, Status } from "./status";
import { store } from "./store";
import { showInTab } from "./tab";
import { Targets } from "./targets";
import { startTheme } from "./theme";
import { Top } from "./top";
import { Confirm, Toasts, useStore } from "./ui";
import { Why } from "./why";

function App() {
  const { link, sample } = useStore();
  const [help, showHelp] = useState(false);
  useShortcuts(() => showHelp(true));
  const locked = link.is === "locked";
  const shown = !locked && sample !== null;
  // The browser has looked for the section of the address when there was none yet.
  useEffect(() => {
    if (shown && /^#[^=]+$/.test(location.hash)) goTo(location.hash.slice(1));
  }, [shown]);
  return (
    <>
      <Top help={() => showHelp(true)} />
      <main class={link.is === "gone" ? "stale" : ""}>
        <Gone link={link} />
        {locked && <Locked wrong={link.wrong} />}
        {!locked && sample === null && link.is !== "gone" && <p class="first">Asking greenroom…</p>}
        {!locked && sample !== null && (
          <>
            <Status sample={sample} />
            <Flow sample={sample} />
            <Figures sample={sample} />
            <Advice findings={sample.health.findings} />
            <Overview sample={sample} />
            <Pools pools={sample.pools} />
            <div class="columns">
              <div>
                <Parked sample={sample} />
                <Letters sample={sample} />
                <Targets handlers={sample.handlers} outputs={sample.outputs} />
              </div>
              <div>
                <Inputs inputs={sample.run.inputs} />
                <Hottest keys={sample.hottest} />
                <Events events={store.events} />
              </div>
            </div>
            <p class="faint">All times are of the time zone {ZONE}.</p>
          </>
        )}
      </main>
      {help && <Help close={() => showHelp(false)} />}
      {shown && <Why />}
      <Confirm />
      <Toasts />
    </>
  );
}

startMarking();
startTheme();
startLinks();
store.watch(showInTab);
const place = document.getElementById("app");
if (place) {
  place.textContent = "";
  render(<App />, place);
}
// The seconds since greenroom has gone count on while nothing comes.
setInterval(() => store.link.is === "gone" && store.tell(), 1_000);
void store.run();
