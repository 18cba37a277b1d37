// Shortcuts: single keys that lead somewhere. They can be switched off, because speech input and
// some keyboards send them by accident.

import { useEffect } from "preact/hooks";
import { SECTIONS, goTo } from "./sections";
import { store } from "./store";
import { nextTheme, setTheme } from "./theme";
import { Dialog } from "./ui";

const KEY = "greenroom-shortcuts";

export function shortcutsAreOn(): boolean {
  return localStorage.getItem(KEY) !== "off";
}

export function switchShortcuts(): void {
  if (shortcutsAreOn()) localStorage.setItem(KEY, "off");
  else localStorage.removeItem(KEY);
  store.tell();
}

export function switchTheme(): void {
  setTheme(nextTheme());
  store.tell();
}

export function useShortcuts(help: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const at = event.target instanceof HTMLElement ? event.target : null;
      const writes = at?.matches("input, select, textarea") ?? false;
      if (!shortcutsAreOn() || writes || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const section = SECTIONS.find(([key]) => key === event.key);
      if (section) goTo(section[1]);
      else if (event.key === "?") help();
      else if (event.key === "t") switchTheme();
      else if (event.key === "/") document.getElementById("find")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

export function Help({ close }: { close: () => void }) {
  const keys: [string, string][] = [
    ...SECTIONS.map(([key, , name]): [string, string] => [key, name]),
    ["/", "find a key, an event or a name"],
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
