/** What an extension attribute may be; a number is a whole one. */
export type ExtensionValue = string | boolean | number;

export interface EventInit<T = unknown> {
  /** With `source` it names the event among all others. */
  id: string;
  /** Where it comes from, as a URI reference such as `/shop`. */
  source: string;
  /** What has happened, such as `order.placed`. */
  type: string;
  subject?: string | null;
  /** A `Date`, or an RFC 3339 text. */
  time?: string | Date | null;
  datacontenttype?: string | null;
  dataschema?: string | null;
  /** Further attributes. Their names are lower-case letters and digits. */
  extensions?: Record<string, ExtensionValue | null>;
  /** What JSON can hold, or bytes. */
  data?: T;
}

/** One CloudEvent. It does not change; `derive` and `replace` make new ones. */
export class Event<T = any> {
  constructor(init: EventInit<T>);
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string;
  /** RFC 3339, as it came; `timestamp` has it as a `Date`. */
  readonly time?: string;
  readonly datacontenttype?: string;
  readonly dataschema?: string;
  readonly extensions: Readonly<Record<string, ExtensionValue>>;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** Higher in each later assignment of the event's partition, also in another process. */
  readonly fence: number | undefined;
  /** What JSON can hold, or a `Buffer`; `undefined` where the event has none. */
  get data(): T;
  /** The event as JSON text: as it came, or as it will go. Numbers have all their digits here. */
  get raw(): string;
  /** `time` to the millisecond; a leap second as the second before. */
  get timestamp(): Date | undefined;
  /**
   * A new event that this one has led to: the worker's `source`, the `subject` of this event, the
   * `time` now, and an `id` that another attempt makes again.
   */
  derive<D>(type: string, data?: D, attributes?: Partial<Omit<EventInit, "type" | "data">>): Event<D>;
  /**
   * This event with other attributes or other data: the same id from the same source. Throws a
   * `TypeError` at a name that is no attribute.
   */
  replace(changes: Partial<EventInit>): Event;
  /** The members of the JSON format. */
  toJSON(): Record<string, unknown>;
  /** The JSON format on one line. Throws where the data has something that JSON cannot hold. */
  toText(): string;
  /** The event of a text in the JSON format of CloudEvents. */
  static fromJSON(text: string): Event;
}

type Several = Iterable<Event> | AsyncIterable<Event>;
type Result = Event | Several | null | undefined | void;

/** A function of one event. What it returns or throws decides what follows. */
export type Handler<T = any> = (event: Event<T>) => Result | Promise<Result>;

export interface WorkerOptions {
  /** The `source` of the events that handlers derive. Default: `/workers/NAME` of `NAME.js`. */
  source?: string;
  /** Seconds between two signs of life while an event is in hand. Default: none. */
  heartbeat?: number;
  /** So many events, then the process ends, and greenroom starts a fresh one. Default: no end. */
  recycleAfter?: number;
  /** Awaited before the process ends. */
  close?: () => unknown;
}

/** Handlers by type, for one process. */
export class Worker {
  constructor(options?: WorkerOptions);
  readonly source: string;
  /** The function is for events of these types; the most specific pattern wins. */
  on<T = any>(patterns: string | string[], handler: Handler<T>): this;
  /** Handles events until greenroom says that there are no more; then ends the process. */
  run(): Promise<never>;
  /** As `run`, and leaves the end of the process to the caller. */
  serve(): Promise<void>;
}

/** Serves one function that handles every type. */
export function run<T = any>(handler: Handler<T>, options?: WorkerOptions): Promise<never>;

/** Another attempt is to be made: after so many seconds, or by the configured backoff. */
export class Retry extends Error {
  constructor(reason?: string, options?: { after?: number; cause?: unknown });
  constructor(options: { after?: number; cause?: unknown });
  readonly after?: number;
}

/** No attempt will help: the event becomes a dead letter, with this reason. */
export class Reject extends Error {}

/** The event is given back as if it had not been begun: no attempt is counted. */
export class Release extends Error {}
