// What is not as it should be, the worst first: the first thing that an operator reads.

import { several, time } from "./format";
import type { Tone } from "./ui";
import type { Sample } from "./types";

export interface Problem {
  tone: Tone;
  text: string;
  /** For how long, in ms. */
  lasted: number | null;
  /** The section that tells more. */
  at: string;
}

/** An event that is in hand for so long is looked at. */
export const LONG_IN_HAND = 60_000;

/** How those reasons of the daemon's health begin that stand here in other words, with times. */
const TOLD = /^(the handler `|every worker of the pool `|the pool `|the output `|[\d,]+ keys? )/;

export function problems(sample: Sample): Problem[] {
  const all: Problem[] = [];
  const add = (tone: Tone, text: string, lasted: number | null, at: string) => all.push({ tone, text, lasted, at });
  if (sample.run.phase !== "run") add("care", "The run is ending: nothing more is read", null, "inputs");
  for (const reason of sample.health.reasons) {
    if (!TOLD.test(reason)) add(sample.health.health === "red" ? "bad" : "care", reason, null, "inputs");
  }
  for (const { name, state, outage } of sample.handlers) {
    const error = outage ? `: ${outage.last_error}` : "";
    const lasted = outage?.lasted_ms ?? null;
    if (state === "refused") add("bad", `The target of ${name} refuses greenroom itself${error}`, lasted, "targets");
    if (state === "outage") add("care", `${name} is in outage${error}`, lasted, "targets");
    if (state === "paused") add("care", `The handler ${name} is paused`, null, "targets");
  }
  for (const pool of sample.pools) {
    if (pool.state === "without workers") add("bad", `Every worker of the pool ${pool.name} was given up`, null, "pools");
    if (pool.state === "paused") add("care", `The pool ${pool.name} is paused`, null, "pools");
    if (pool.state === "full" && (pool.oldest_ms ?? 0) > 5_000) {
      add("care", `The queue of the pool ${pool.name} is full`, pool.oldest_ms, "pools");
    }
    const stuck = pool.state === "paused" ? [] : (pool.slots ?? []).filter((busy) => (busy ?? 0) >= LONG_IN_HAND);
    if (stuck.length > 0) {
      const longest = Math.max(...stuck.map(Number));
      const has = stuck.length === 1 ? "has" : "have";
      add("care", `${several(stuck.length, "worker")} of ${pool.name} ${has} had an event in hand for over ${time(LONG_IN_HAND)}`, longest, "pools");
    }
  }
  for (const output of sample.outputs) {
    const { state, trouble, failure } = output;
    const name = output.removed ? `The removed output ${output.name}` : `The output ${output.name}`;
    if (state === "failed") add("bad", `${name} has failed: ${failure ?? ""}`, null, "targets");
    if (state === "paused") add("bad", `${name} is paused: ${trouble?.last_error ?? ""}`, trouble?.lasted_ms ?? null, "targets");
    if (state === "failing") add("care", `${name} fails: ${trouble?.last_error ?? ""}`, trouble?.lasted_ms ?? null, "targets");
  }
  const { parked_keys: keys, parked_events: events } = sample.run;
  if (keys > 0) {
    const longest = sample.parked[0]?.since_ms ?? null;
    add("care", `${several(keys, "key")} ${keys === 1 ? "is" : "are"} parked; ${several(events, "event")} wait for somebody to decide`, longest, "keys");
  }
  const order: Tone[] = ["bad", "care", "idle", "well"];
  return all.sort((one, other) => order.indexOf(one.tone) - order.indexOf(other.tone));
}

export function headline(found: Problem[]): { tone: Tone; text: string } {
  const bad = found.filter((problem) => problem.tone === "bad").length;
  if (bad > 0) return { tone: "bad", text: bad === 1 ? "One thing is broken" : `${bad} things are broken` };
  if (found.length > 0) {
    return { tone: "care", text: found.length === 1 ? "One thing needs a look" : `${found.length} things need a look` };
  }
  return { tone: "well", text: "All is well" };
}
