// The line above all: where this is, the way to the sections, the box that finds, and switches.

import { Find } from "./find";
import { SECTIONS } from "./sections";
import { shortcutsAreOn, switchShortcuts, switchTheme } from "./shortcuts";
import { store } from "./store";
import { theme } from "./theme";

export function Top({ help }: { help: () => void }) {
  const { hello, link } = store;
  const colours = { auto: "as the system", light: "light", dark: "dark" }[theme()];
  const shortcuts = shortcutsAreOn() ? "on" : "off";
  return (
    <div class="top">
      <a class="skip" href="#pools">to the pools</a>
      <svg class="sign" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" /><path d="M8 9h16M8 16h10M8 23h13" /></svg>
      <span class="brand">greenroom</span>
      {hello && <span class="version" title={hello.instance}>{[hello.instance, hello.version].filter(Boolean).join(" · ")}</span>}
      <nav aria-label="sections">
        {SECTIONS.map(([, id, name]) => (
          <a key={id} href={`#${id}`}>{name}</a>
        ))}
      </nav>
      <span class="room" />
      {link.is !== "locked" && <Find />}
      <span class={`pulse is-${link.is}`} title={link.is === "live" ? "live" : link.is}>
        <span class="dot" aria-hidden="true" />
        {link.is === "live" ? "live" : link.is === "gone" ? (link.refused ? "refused" : "no answer") : "asking"}
      </span>
      {hello && !hello.may_change && <span class="role">read only</span>}
      {hello && hello.role !== "no token" && (
        <button type="button" class="plain" onClick={() => store.unlock(null)}>Forget the token</button>
      )}
      <button type="button" class="plain" aria-label={`colours: ${colours}`} title={`colours: ${colours} (t)`} onClick={switchTheme}>
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6" /><path d="M8 2a6 6 0 0 1 0 12z" class="half" /></svg>
      </button>
      <button type="button" class="plain" role="switch" aria-checked={shortcuts === "on"} aria-label="keyboard shortcuts" title={`keyboard shortcuts: ${shortcuts}`} onClick={switchShortcuts}>
        <svg class={`icon ${shortcuts}`} viewBox="0 0 16 16" aria-hidden="true"><rect x="1" y="4" width="14" height="8" rx="1.5" /><path d="M4 7h.5M8 7h.5M12 7h.5M5 9.5h6" />{shortcuts === "off" && <path d="M2 14 14 2" />}</svg>
      </button>
      <button type="button" class="plain" aria-label="shortcuts" title="shortcuts (?)" onClick={help}>?</button>
    </div>
  );
}
