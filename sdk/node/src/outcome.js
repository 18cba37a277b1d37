// What becomes of an event: what a handler throws, and what greenroom is told.

import { inspect } from "node:util";

/** greenroom takes a longer line for a worker that has lost its line ends, and ends the worker. */
export const LONGEST_ANSWER = 16 * 1024 * 1024;

/** How much of an error is sent, in characters. greenroom keeps 4 KiB. */
const LONGEST_ERROR = 4096;

/** The longest time until another attempt, in seconds: some thirty years. */
const LONGEST_WAIT = 1e9;

/** Another attempt is to be made: after so many seconds, or by the configured backoff. */
export class Retry extends Error {
  name = "Retry";

  /**
   * @param {string | { after?: number, cause?: unknown }} [reason]
   * @param {{ after?: number, cause?: unknown }} [options]
   */
  constructor(reason = "", options = {}) {
    if (typeof reason === "object") [reason, options] = ["", reason];
    super(reason, options);
    const { after } = options;
    if (after != null && !(after >= 0 && after <= LONGEST_WAIT)) {
      throw new RangeError(`\`after\` must be 0 to ${LONGEST_WAIT} seconds, not ${after}`);
    }
    /** In seconds. */
    this.after = after ?? undefined;
  }
}

/** No attempt will help: the event becomes a dead letter, with this reason. */
export class Reject extends Error {
  name = "Reject";
}

/** The event is given back as if it had not been begun: no attempt is counted. */
export class Release extends Error {
  name = "Release";
}

/** What follows from what a handler threw. */
export function outcomeOf(thrown) {
  const known = [
    [Retry, "failure"],
    [Reject, "reject"],
    [Release, "released"],
  ].find(([type]) => thrown instanceof type);
  const outcome = { kind: known?.[1] ?? "failure", events: [], exception: thrown };
  outcome.error = known ? thrown.message || undefined : textOf(thrown);
  if (thrown instanceof Retry) outcome.retryAfter = thrown.after;
  return outcome;
}

/** The stack of what was not expected, on standard error. */
export function tell({ exception }) {
  const isExpected = [Retry, Reject, Release].some((type) => exception instanceof type);
  if (exception !== undefined && !isExpected) process.stderr.write(`${described(exception)}\n`);
}

/**
 * The line for greenroom, with its end. An output that cannot be sent rejects the event: another
 * attempt would bring the same.
 */
export function lineOf(token, outcome) {
  let why;
  try {
    const line = written(token, outcome);
    if (Buffer.byteLength(line) <= LONGEST_ANSWER) return line;
    why = `what the handler returned has ${Buffer.byteLength(line)} bytes, more than ${LONGEST_ANSWER}`;
  } catch (error) {
    why = `an event that the handler returned cannot be written: ${error?.message}`;
  }
  process.stderr.write(`${why}\n`);
  return written(token, { kind: "reject", events: [], error: why });
}

function written(token, { kind, events, error, retryAfter }) {
  const parts = [`{"token":${JSON.stringify(token)},"outcome":"${kind}"`];
  if (events.length > 0) {
    parts.push(`,"events":[${events.map((event) => event.toText()).join(",")}]`);
  }
  if (error) parts.push(`,"error":${JSON.stringify(sendable(error))}`);
  if (retryAfter !== undefined) parts.push(`,"retry_after_ms":${Math.ceil(retryAfter * 1000)}`);
  // An event that was read from a text keeps it, which may have line breaks between its tokens.
  return `${parts.join("").replaceAll("\n", " ")}}\n`;
}

/** Without lone surrogates, which greenroom takes for no JSON, and not without end. */
function sendable(text) {
  return Buffer.from(text.slice(0, LONGEST_ERROR), "utf8").toString("utf8");
}

function textOf(thrown) {
  if (!(thrown instanceof Error)) return described(thrown);
  return thrown.message ? `${thrown.name}: ${thrown.message}` : String(thrown.name);
}

function described(thrown) {
  if (typeof thrown === "string") return thrown;
  try {
    return thrown instanceof Error && thrown.stack ? thrown.stack : inspect(thrown);
  } catch {
    return "an error without a text";
  }
}
