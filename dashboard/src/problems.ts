// What is not as it should be: what the daemon found, causes first, each with what follows from it.

import type { Finding, Health } from "./types";
import type { Tone } from "./ui";

export const TONES: Record<Finding["severity"], Tone> = { critical: "bad", warning: "care", hint: "idle" };

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

/** The section of the page that tells more about `pools.erp`, or about `keys`. */
export function section(about: string): string {
  const [kind = ""] = about.split(".", 1);
  const sections: Record<string, string> = { handlers: "targets", outputs: "targets", dead_letters: "letters", run: "inputs" };
  return sections[kind] ?? kind;
}

/** How bad it is for each part of the flow that has a finding. Findings come worst first. */
export function troubles({ findings }: Health): Map<string, Tone> {
  const bad = findings.filter(({ severity }) => severity !== "hint");
  return new Map(bad.reverse().map(({ about, severity }) => [about, TONES[severity]]));
}
