// What the tab tells: the verdict and the instance in its title, the colour in its sign.

import { store } from "./store";

const COLOURS = { green: "#1c7a46", yellow: "#b86e00", red: "#b3261e", unknown: "#66706a" };
const LONGEST = 60;

let shown = "";

function sign(colour: string): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${colour}"/><path d="M8 9h16M8 16h10M8 23h13" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** A hidden tab asks for nothing: its sign is grey then, because the verdict is an old one. */
export function showInTab(): void {
  const { sample, hello, link } = store;
  const isLive = link.is === "live" && sample !== null;
  const verdict = link.is === "gone" ? (link.refused ? "refused" : "no answer") : cut(sample?.health.headline.replaceAll("`", "") ?? "");
  const parts = link.is === "locked" ? [] : [verdict, hello?.instance ?? ""].filter((part) => part !== "");
  const title = parts.length === 0 ? "Greenroom" : `${isLive ? "●" : "○"} ${parts.join(" · ")} – Greenroom`;
  const colour = COLOURS[isLive ? sample.health.health : "unknown"];
  if (title + colour === shown) return;
  shown = title + colour;
  document.title = title;
  document.querySelector<HTMLLinkElement>("link[rel=icon]")?.setAttribute("href", sign(colour));
}
