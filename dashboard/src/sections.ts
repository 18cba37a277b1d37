// The sections of the page, and the way to them and to their rows.

import { showPool } from "./pools";
import { section } from "./problems";

/** Each with the key that leads to it. */
export const SECTIONS: [string, string, string][] = [
  ["1", "pools", "Pools"],
  ["2", "keys", "Parked keys"],
  ["3", "letters", "Dead letters"],
  ["4", "inputs", "Inputs"],
  ["5", "targets", "Handlers and outputs"],
  ["6", "events", "Events"],
];

/** To a section, or to the row of `pools.erp`; its section where the row is not there. */
export function goTo(id: string): void {
  const row = document.getElementById(id);
  if (row && id.startsWith("pools.")) showPool(id.slice("pools.".length));
  const place = row ?? document.getElementById(section(id));
  place?.scrollIntoView({ block: "start" });
  place?.focus({ preventScroll: true });
}

/** Links within the page lead there and leave the address alone: it says what is shown. */
export function startLinks(): void {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goTo(decodeURIComponent(link.hash.slice(1)));
  });
}
