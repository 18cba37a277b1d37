// The dashboard of a running greenroom.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { Advice } from "./advice";
import { Events } from "./events";
import { Inputs } from "./inputs";
import { Hottest, Parked, Why } from "./keys";
import { Letters } from "./letters";
import { Pools } from "./pools";
import { Figures, Gone, Overview, Status } from "./status";
import { store } from "./store";
import { Targets } from "./targets";
import { nextTheme, setTheme, startTheme, theme } from "./theme";
import { Confirm, Dialog, Toasts, useStore } from "./ui";

/** Sections by the key that leads to them. */
const SECTIONS: [string, string, string][] = [
  ["1", "pools", "Pools"],
  ["2", "keys", "Parked keys"],
  ["3", "letters", "Dead letters"],
  ["4", "inputs", "Inputs"],
  ["5", "targets", "Handlers and outputs"],
  ["6", "events", "Events"],
];

function goTo(id: string): void {
  const section = document.getElementById(id);
  section?.scrollIntoView({ block: "start" });
  section?.focus({ preventScroll: true });
}

function useShortcuts(help: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const at = event.target instanceof HTMLElement ? event.target : null;
      const writes = at?.matches("input, select, textarea") ?? false;
      if (writes || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const section = SECTIONS.find(([key]) => key === event.key);
      if (section) goTo(section[1]);
      else if (event.key === "?") help();
      else if (event.key === "t") switchTheme();
      else if (event.key === "/") document.getElementById("why-key")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function switchTheme(): void {
  setTheme(nextTheme());
  store.tell();
}

function Top({ help }: { help: () => void }) {
  const { hello, link } = store;
  const names = { auto: "as the system", light: "light", dark: "dark" };
  return (
    <div class="top">
      <a class="skip" href="#pools">to the pools</a>
      <svg class="sign" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" /><path d="M8 9h16M8 16h10M8 23h13" /></svg>
      <span class="brand">greenroom</span>
      {hello && <span class="version">{hello.version}</span>}
      <nav aria-label="sections">
        {SECTIONS.map(([, id, name]) => (
          <a key={id} href={`#${id}`}>{name}</a>
        ))}
      </nav>
      <span class="room" />
      <span class={`pulse is-${link.is}`} title={link.is === "live" ? "live" : link.is}>
        <span class="dot" aria-hidden="true" />
        {link.is === "live" ? "live" : link.is === "gone" ? "no answer" : "asking"}
      </span>
      {hello && !hello.may_change && <span class="role">read only</span>}
      {hello && hello.role !== "no token" && (
        <button type="button" class="plain" onClick={() => store.unlock(null)}>Forget the token</button>
      )}
      <button type="button" class="plain" aria-label={`colours: ${names[theme()]}`} title={`colours: ${names[theme()]} (t)`} onClick={switchTheme}>
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6" /><path d="M8 2a6 6 0 0 1 0 12z" class="half" /></svg>
      </button>
      <button type="button" class="plain" aria-label="shortcuts" title="shortcuts (?)" onClick={help}>?</button>
    </div>
  );
}

function Help({ close }: { close: () => void }) {
  const keys: [string, string][] = [
    ...SECTIONS.map(([key, , name]): [string, string] => [key, name]),
    ["/", "why does a key wait"],
    ["t", "colours: as the system, light, dark"],
    ["?", "this list"],
    ["Esc", "closes what is open"],
    ["← → ↑ ↓", "chooses a worker on the map"],
  ];
  return (
    <Dialog title="Shortcuts" close={close}>
      <dl class="shortcuts">
        {keys.map(([key, what]) => (
          <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}

function Locked({ wrong }: { wrong: boolean }) {
  const [typed, type] = useState("");
  return (
    <form
      class="locked card"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== "") store.unlock(typed);
      }}
    >
      <h1>This greenroom asks for a token</h1>
      <p>It is <code>admin.token</code> of its configuration, or <code>admin.read_token</code> to look and change nothing. This tab keeps it until it is closed.</p>
      <label for="token">Token</label>
      <div class="line">
        <input id="token" type="password" autocomplete="off" autofocus value={typed} aria-invalid={wrong} onInput={(event) => type(event.currentTarget.value)} />
        <button type="submit" class="act main" disabled={typed === ""}>Show it</button>
      </div>
      {wrong && <p class="error" role="alert">That token is not the one.</p>}
    </form>
  );
}

function App() {
  const { link, sample } = useStore();
  const [help, showHelp] = useState(false);
  useShortcuts(() => showHelp(true));
  const locked = link.is === "locked";
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
          </>
        )}
      </main>
      {help && <Help close={() => showHelp(false)} />}
      <Why />
      <Confirm />
      <Toasts />
    </>
  );
}

startTheme();
const place = document.getElementById("app");
if (place) {
  place.textContent = "";
  render(<App />, place);
}
// The seconds since greenroom has gone count on while nothing comes.
setInterval(() => store.link.is === "gone" && store.tell(), 1_000);
void store.run();
