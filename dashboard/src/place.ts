// Where the page is, in its address: a link shows the same to others, and back goes back.

const NAMES = ["range", "sort", "why", "letter", "reason", "handler", "group", "key", "share", "event"] as const;
type Name = (typeof NAMES)[number];
export type Place = Partial<Record<Name, string>>;

const watchers = new Set<() => void>();
let now = read();

function read(): Place {
  const written = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(NAMES.map((name) => [name, written.get(name) ?? ""]));
}

/** `""` if the address does not say. */
export function at(name: Name): string {
  return now[name] ?? "";
}

/** Changes some of it; what becomes `""` leaves the address. */
export function go(changes: Place): void {
  const before = written();
  now = { ...now, ...changes };
  const after = written();
  if (after === before) return;
  history.pushState(null, "", after === "" ? location.pathname : `#${after}`);
  for (const watcher of watchers) watcher();
}

function written(): string {
  return new URLSearchParams(NAMES.map((name): [string, string] => [name, at(name)]).filter(([, value]) => value !== "")).toString();
}

export function onMove(watcher: () => void): void {
  watchers.add(watcher);
}

addEventListener("popstate", () => {
  now = read();
  for (const watcher of watchers) watcher();
});
