// The playground of `greenroom demo`: one load, two pools, and what a visitor makes of it.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "../base.css";
import "./playground.css";
import { inWords } from "../api";
import { time } from "../format";
import { nextTheme, setTheme, startTheme, theme } from "../theme";
import { SettingsCard } from "./settings";
import { SideCard } from "./side";
import { ask, change, type Settings, type State } from "./state";

/** Between two looks. */
const PERIOD_MS = 250;
/** A slider that moves is told so often at most. */
const TOLD_MS = 120;

/** Looks while the page is seen. */
function usePlayground(): { state: State | null; trouble: string; tell: (settings: Settings) => void } {
  const [state, setState] = useState<State | null>(null);
  const [trouble, setTrouble] = useState("");
  // What was set here and is not known there yet.
  const untold = useRef<Settings>({});
  const telling = useRef(false);
  const heard = (state: State) => {
    setTrouble("");
    const settings = state.settings.map((setting) => ({ ...setting, value: untold.current[setting.name] ?? setting.value }));
    setState({ ...state, settings });
  };
  const send = async () => {
    if (telling.current) return;
    telling.current = true;
    await new Promise((done) => setTimeout(done, TOLD_MS));
    const settings = untold.current;
    untold.current = {};
    await change(settings).then(heard, (why: unknown) => setTrouble(inWords(why)));
    telling.current = false;
    if (Object.keys(untold.current).length > 0) void send();
  };
  useEffect(() => {
    let ended = false;
    const look = async () => {
      while (!ended) {
        // What is being changed would jump back.
        if (!document.hidden && !telling.current) await ask().then((state) => telling.current || heard(state), (why: unknown) => setTrouble(inWords(why)));
        await new Promise((done) => setTimeout(done, PERIOD_MS));
      }
    };
    void look();
    return () => { ended = true; };
  }, []);
  const tell = (settings: Settings) => {
    untold.current = { ...untold.current, ...settings };
    setState((state) => state && { ...state, settings: state.settings.map((setting) => ({ ...setting, value: settings[setting.name] ?? setting.value })) });
    void send();
  };
  return { state, trouble, tell };
}

function headline({ sides }: State): string {
  const [lanes, hashing] = sides;
  const times = (lanes?.p99_ms ?? 0) > 0 ? (hashing?.p99_ms ?? 0) / (lanes?.p99_ms ?? 1) : 0;
  const both = `p99 of the cold keys: ${time(lanes?.p99_ms)} with lanes, ${time(hashing?.p99_ms)} with hashing`;
  return times >= 2 ? `${both}, ${times.toFixed(0)} times as long` : both;
}

function Playground() {
  const { state, trouble, tell } = usePlayground();
  const [, again] = useState(0);
  const colours = { auto: "as the system", light: "light", dark: "dark" }[theme()];
  const turn = () => {
    setTheme(nextTheme());
    again((times) => times + 1);
  };
  return (
    <>
      <div class="top">
        <svg class="sign" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" /><path d="M8 9h16M8 16h10M8 23h13" /></svg>
        <span class="brand">greenroom</span>
        <span class="faint">playground</span>
        <span class="room" />
        <button type="button" class="plain" aria-label={`colours: ${colours}`} title={`colours: ${colours}`} onClick={turn}>
          <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6" /><path d="M8 2a6 6 0 0 1 0 12z" class="half" /></svg>
        </button>
      </div>
      <main>
        {trouble !== "" && <p class="card trouble" role="alert">{trouble}</p>}
        {state === null ? <p class="first">Starting two pools…</p> : <Shown state={state} tell={tell} />}
      </main>
    </>
  );
}

function Shown({ state, tell }: { state: State; tell: (settings: Settings) => void }) {
  return (
    <>
      <div>
        <h1>{headline(state)}</h1>
        <p class="soft">
          Two pools get the same events at the same times: 400 a second of 300 orders, of which the ten most frequent are not cold.
          Both keep the order of each key. Change what you like.
        </p>
      </div>
      <SettingsCard settings={state.settings} change={tell} />
      <div class="sides">
        {state.sides.map((side) => <SideCard key={side.name} side={side} />)}
      </div>
      <p class="faint">
        Times are from an event's arrival until it is handled, over the last five seconds. A key has at most 100 events in line; more
        are turned away. Failed attempts are tried again after 0.1 to 0.4 s: with lanes only the key waits for that, with hashing its
        worker does. A pool by hash has no shares.
      </p>
    </>
  );
}

startTheme();
const place = document.getElementById("app");
if (place) {
  place.textContent = "";
  render(<Playground />, place);
}
