// Handlers on events, without greenroom.

import { Event } from "./event.js";
import { lineOf, tell } from "./outcome.js";
import { Worker, read } from "./worker.js";

/**
 * An event with the id `1` from `/test`, unless `attributes` say otherwise.
 *
 * @param {string} [type]
 * @param {unknown} [data]
 * @param {Partial<import("../index.d.ts").EventInit>} [attributes]
 */
export function event(type = "test.happened", data = undefined, attributes = {}) {
  return new Event({ id: "1", source: "/test", ...attributes, type, data });
}

/**
 * What greenroom would be told of this event: the handler gets it as it would come through the
 * pipe, and its answer is what would go there. What the handler throws is the outcome's
 * `exception`.
 *
 * @param {import("../index.d.ts").Handler | Worker} handler
 * @param {Event} given
 * @param {{ attempt?: number }} [options]
 * @returns {Promise<import("../testing.d.ts").Outcome>}
 */
export async function handle(handler, given, { attempt = 1 } = {}) {
  const isWorker = handler instanceof Worker;
  const worker = isWorker ? handler : new Worker({ source: "/workers/test" }).on("**", handler);
  const line = `{"token":"1","attempt":${attempt},"event":${given.toText()}}`;
  const outcome = await worker.handle(read(line, worker.source).event);
  tell(outcome);
  const sent = JSON.parse(lineOf("1", outcome));
  if (sent.outcome !== outcome.kind) return { kind: sent.outcome, events: [], error: sent.error };
  return outcome;
}
