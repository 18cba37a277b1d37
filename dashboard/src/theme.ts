// Light or dark: as the system is, or as was chosen here.

const KEY = "greenroom-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set<() => void>();

export type Theme = "auto" | "light" | "dark";

export function theme(): Theme {
  const chosen = localStorage.getItem(KEY);
  return chosen === "light" || chosen === "dark" ? chosen : "auto";
}

function apply(): void {
  const chosen = theme();
  const shown = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
  document.documentElement.dataset["theme"] = shown;
  for (const watcher of watchers) watcher();
}

export function setTheme(chosen: Theme): void {
  if (chosen === "auto") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, chosen);
  apply();
}

/** The one behind this one, for a switch. */
export function nextTheme(): Theme {
  const order: Theme[] = ["auto", "light", "dark"];
  return order[(order.indexOf(theme()) + 1) % order.length] ?? "auto";
}

export function onTheme(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function startTheme(): void {
  dark.addEventListener("change", apply);
  apply();
}
