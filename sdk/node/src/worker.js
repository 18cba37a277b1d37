// Workers: handlers by type, and the loop that serves them.

import path from "node:path";

import { Channel } from "./channel.js";
import { Event } from "./event.js";
import { Reject, lineOf, outcomeOf, tell } from "./outcome.js";
import { bySpecificity, covers, parse } from "./pattern.js";

const OPTIONS = ["source", "heartbeat", "recycleAfter", "close"];

/** For how many types it is kept which handler they have. */
const KNOWN_TYPES = 1024;

/** How greenroom begins a line. */
const TOKEN = /^\{"token": ?"([0-9A-Za-z_-]+)"/;

/** The longest interval of a timer, in seconds. */
const LONGEST_INTERVAL = 2_000_000;

/** Handlers by type, for one process. */
export class Worker {
  #handlers = [];
  #known = new Map();
  #options;

  /** @param {import("../index.d.ts").WorkerOptions} [options] */
  constructor(options = {}) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
    if (unknown !== undefined) throw new TypeError(`a worker has no option "${unknown}"`);
    const { heartbeat, recycleAfter } = options;
    if (heartbeat !== undefined && !(heartbeat > 0 && heartbeat <= LONGEST_INTERVAL)) {
      throw new RangeError("`heartbeat` must be more than 0 seconds");
    }
    if (recycleAfter !== undefined && !(Number.isInteger(recycleAfter) && recycleAfter > 0)) {
      throw new RangeError("`recycleAfter` must be a whole number above 0");
    }
    this.#options = options;
    this.source = options.source ?? sourceOfThisProgram();
    Object.freeze(this);
  }

  /**
   * The function is for events of this type, or of these: `order.placed`, `order.*` (one segment)
   * or `order.**` (any number). The most specific pattern wins.
   *
   * @param {string | string[]} patterns
   * @param {import("../index.d.ts").Handler} handler
   * @returns {this}
   */
  on(patterns, handler) {
    if (typeof handler !== "function") throw new TypeError("the handler must be a function");
    const texts = [patterns].flat();
    if (texts.length === 0) throw new TypeError('name the types: worker.on("order.placed", handler)');
    for (const text of texts) {
      const segments = parse(text);
      if (this.#handlers.some((taken) => taken.text === text)) {
        throw new TypeError(`there is a handler for "${text}" already`);
      }
      this.#handlers.push({ text, segments, handler });
    }
    this.#handlers.sort((a, b) => bySpecificity(a.segments, b.segments));
    this.#known.clear();
    return this;
  }

  /**
   * Handles events until greenroom closes standard input or sends SIGTERM, finishes what is in
   * hand, awaits `close` of the options, and ends the process with code 0: an open connection or a
   * timer does not keep it.
   *
   * Run by hand in a terminal, it says what to do instead, and ends with code 2.
   */
  async run() {
    await this.serve();
    await this.#options.close?.();
    process.exit();
  }

  /** As `run`, and leaves the end of the process to the caller. */
  async serve() {
    refuseTerminal();
    if (this.#handlers.length === 0) {
      throw new Error('the worker has no handler; add one with worker.on("**", handler)');
    }
    const session = new Session(this.source, this.#options);
    while (await session.serveOne((event) => this.handle(event)));
    session.end();
  }

  /** What becomes of the event. Does not throw. */
  async handle(event) {
    try {
      const handler = this.#handlerOf(event.type);
      if (!handler) throw new Reject(`the worker has no handler for events of "${event.type}"`);
      return await outcomeFor(event, await handler(event));
    } catch (thrown) {
      return outcomeOf(thrown);
    }
  }

  #handlerOf(type) {
    if (!this.#known.has(type)) {
      if (this.#known.size >= KNOWN_TYPES) this.#known.clear();
      const found = this.#handlers.find(({ segments }) => covers(segments, type));
      this.#known.set(type, found?.handler);
    }
    return this.#known.get(type);
  }
}

/**
 * Serves one function that handles every type; see `Worker.run`.
 *
 * @param {import("../index.d.ts").Handler} handler
 * @param {import("../index.d.ts").WorkerOptions} [options]
 */
export function run(handler, options) {
  return new Worker(options).on("**", handler).run();
}

/** The events of one process, one after the other. */
class Session {
  #channel = Channel.open();
  #source;
  #heartbeat;
  #left;
  #isInHand = false;
  #stop = () => this.#channel.stop();
  #leave = (code) => {
    if (this.#isInHand && code === 0) {
      process.stderr.write(
        "the process ended with an event in hand: the handler called process.exit, or awaits what never comes\n",
      );
      // Code 0 would say that nothing was in hand.
      process.exitCode = 1;
    }
  };

  constructor(source, { heartbeat, recycleAfter = Infinity }) {
    this.#source = source;
    this.#heartbeat = heartbeat;
    this.#left = recycleAfter;
    process.on("SIGTERM", this.#stop);
    process.on("exit", this.#leave);
  }

  /** Handles one event; false where there are to be no more. */
  async serveOne(handle) {
    const line = this.#left > 0 ? await this.#channel.readLine() : undefined;
    if (line === undefined) return false;
    this.#left -= 1;
    this.#isInHand = true;
    const { token, event, refusal } = read(line, this.#source);
    const outcome = refusal ?? (await this.#alive(handle(event)));
    tell(outcome);
    await this.#channel.writeLine(lineOf(token, outcome));
    this.#isInHand = false;
    return true;
  }

  /** Writes heartbeats until the promise is settled. */
  async #alive(promise) {
    if (this.#heartbeat === undefined) return promise;
    const beat = () => this.#channel.writeLine('{"heartbeat":true}\n');
    const timer = setInterval(beat, this.#heartbeat * 1000);
    try {
      return await promise;
    } finally {
      clearInterval(timer);
    }
  }

  /** SIGTERM ends the process at once from here on. */
  end() {
    this.#channel.stop();
    process.off("SIGTERM", this.#stop);
    process.off("exit", this.#leave);
  }
}

async function outcomeFor(event, result) {
  if (result == null) return { kind: "success", events: [] };
  if (result === event && !event.isChanged()) return { kind: "pass", events: [] };
  return { kind: "success", events: await eventsOf(result) };
}

async function eventsOf(result) {
  if (result instanceof Event) return [result];
  const isSeveral = typeof result === "object" &&
    (Symbol.iterator in result || Symbol.asyncIterator in result);
  if (!isSeveral) {
    throw new Reject(`a handler returns nothing, an Event or several, not ${kindOf(result)}`);
  }
  const events = [];
  for await (const found of result) {
    if (!(found instanceof Event)) {
      throw new Reject(`a handler returned ${kindOf(found)} among its events`);
    }
    events.push(found);
  }
  return events;
}

function kindOf(value) {
  return value?.constructor?.name ?? typeof value;
}

/**
 * The event of a line from greenroom, and its token. One that Node cannot read has a `refusal` in
 * its place. Ends the process if there is none.
 */
export function read(line, source) {
  try {
    const { token, attempt, "greenroom-fence": fence, event } = JSON.parse(line);
    if (typeof token !== "string") throw new TypeError("it has no token");
    const fenced = fence === undefined ? "" : `"greenroom-fence":${fence},`;
    const head = `{"token":"${token}","attempt":${attempt},${fenced}"event":`;
    const isUsual = line.startsWith(head) && line.endsWith("}");
    const raw = isUsual ? line.slice(head.length, -1) : JSON.stringify(event);
    return { token, event: Event.fromMembers(event, { raw, attempt, fence, madeBy: source }) };
  } catch (error) {
    const token = error instanceof RangeError ? TOKEN.exec(line)?.[1] : undefined;
    if (token !== undefined) {
      return { token, refusal: outcomeOf(new Reject("the event is nested too deeply for Node to read")) };
    }
    const quoted = JSON.stringify(line.slice(0, 200));
    process.stderr.write(
      `a line on standard input is no event from greenroom (${error.message}): ${quoted}\n${howToTry()}\n`,
    );
    return process.exit(1);
  }
}

function program() {
  return path.basename(process.argv[1] ?? "") || "worker.js";
}

function sourceOfThisProgram() {
  return `/workers/${encodeURIComponent(path.parse(program()).name)}`;
}

function howToTry() {
  return `One event by hand:
  echo '{"token":"1","attempt":1,"event":{"specversion":"1.0","id":"1","source":"/me","type":"t"}}' | node ${program()}
For tests there is greenroom-worker/testing.`;
}

function refuseTerminal() {
  if (!process.stdin.isTTY) return;
  process.stderr.write(`${program()} is a worker: greenroom starts it and writes events to its standard input, which is a
terminal here. In greenroom.yaml:
  handlers:
    prices: { on: order.placed, exec: { command: ["node", "${program()}"] } }
Then: greenroom run greenroom.yaml
${howToTry()}
`);
  process.exit(2);
}
