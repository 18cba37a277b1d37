// What is not as it should be: what the daemon found, causes first, each with what follows from it.

import type { Finding, Health } from "./types";
import type { Tone } from "./ui";

export const TONES: Record<Finding["severity"], Tone> = { critical: "bad", warning: "care", hint: "idle" };

/** An event that is handled for so long is looked at. */
export const LONG_IN_HAND = 60_000;

/** A cause, and what follows from it. */
export interface Chain { cause: Finding; effects: Finding[] }

export function tone({ health }: Health): Tone {
  return health === "red" ? "bad" : health === "yellow" ? "care" : "well";
}

export function chains({ findings }: Health): Chain[] {
  const all: Chain[] = [];
  for (const finding of findings) {
    const last = all.at(-1);
    if (finding.follows !== null && last) last.effects.push(finding);
    else all.push({ cause: finding, effects: [] });
  }
  return all.filter(({ cause, effects }) => [cause, ...effects].some(({ severity }) => severity !== "hint"));
}

/** The section of the page that tells more. */
export function section({ about }: Finding): string {
  const [kind = ""] = about.split(".", 1);
  const sections: Record<string, string> = { inputs: "inputs", pools: "pools", handlers: "targets", outputs: "targets", keys: "keys", dead_letters: "letters" };
  return sections[kind] ?? "inputs";
}
