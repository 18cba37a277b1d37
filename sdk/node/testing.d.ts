import type { Event, EventInit, Handler, Worker } from "./index.js";

/** What greenroom is told of an event. */
export interface Outcome {
  kind: "success" | "pass" | "failure" | "reject" | "released";
  /** What goes to the outputs, for `success`. */
  events: Event[];
  error?: string;
  /** Seconds until the next attempt, for `failure`. */
  retryAfter?: number;
  /** What the handler threw. */
  exception?: unknown;
}

/** An event with the id `1` from `/test`, unless `attributes` say otherwise. */
export function event<T>(type?: string, data?: T, attributes?: Partial<EventInit>): Event<T>;

/** What greenroom would be told of this event. */
export function handle(
  handler: Handler | Worker,
  event: Event,
  options?: { attempt?: number },
): Promise<Outcome>;
