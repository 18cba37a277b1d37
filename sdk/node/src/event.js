// CloudEvents 1.0, as a worker reads and makes them.

import { createHash } from "node:crypto";

/** Of the ids that are made from those of other events. The package for Python has the same one. */
const NAMESPACE = Buffer.from("6f0a3b528f2e5c1d9a773d1f5e8b2c40", "hex");

const REQUIRED = ["id", "source", "type"];
const OPTIONAL = ["subject", "time", "datacontenttype", "dataschema"];
const KNOWN = new Set(["specversion", ...REQUIRED, ...OPTIONAL, "data", "data_base64"]);
/** What `EventInit` has. Any other attribute is an extension, and is given as one. */
const GIVEN = new Set([...REQUIRED, ...OPTIONAL, "data", "extensions"]);
const NAME = /^[a-z0-9]+$/;
const JSON_TYPE = /^[^;]*[/+]json\s*(;|$)/i;

/** What greenroom writes before the data, its last member. No attribute has this in its text. */
const BEFORE_DATA = ',"data":';

/** One CloudEvent. It does not change; `derive` and `replace` make new ones. */
export class Event {
  #data;
  #base64;
  #wasRead = false;
  #raw;
  #madeBy;
  #derived = new Map();
  /** The text of the data as it came, in another event or as bytes. */
  #dataText;

  /**
   * @param {import("../index.d.ts").EventInit} init
   * @param {{
   *   base64?: string, raw?: string, attempt?: number, fence?: number, madeBy?: string,
   *   dataText?: string
   * }} [wire] how it came; not for users
   */
  constructor(init, { base64, raw, attempt = 1, fence, madeBy, dataText } = {}) {
    const unknown = Object.keys(init).find((name) => !GIVEN.has(name));
    if (unknown !== undefined) {
      throw new TypeError(`"${unknown}" is no attribute of an event; others go into \`extensions\``);
    }
    for (const name of REQUIRED) {
      if (init[name] == null) throw new TypeError(`an event needs its \`${name}\``);
    }
    for (const name of [...REQUIRED, ...OPTIONAL]) {
      this[name] = textOf(name, init[name]);
    }
    this.extensions = extensionsOf(init.extensions ?? {});
    this.attempt = attempt;
    this.fence = fence;
    this.#data = init.data;
    this.#base64 = base64;
    this.#raw = raw;
    this.#madeBy = madeBy;
    this.#dataText = dataText;
    Object.freeze(this);
  }

  /**
   * The event of this text in the JSON format of CloudEvents.
   *
   * @param {string} text
   */
  static fromJSON(text, { attempt = 1, madeBy } = {}) {
    return Event.fromMembers(JSON.parse(text), { raw: text, attempt, madeBy });
  }

  /** The event of these members of the JSON format. */
  static fromMembers(members, wire = {}) {
    if (members?.specversion !== "1.0") {
      throw new TypeError('no CloudEvent: "specversion" is not "1.0"');
    }
    const { specversion, data_base64: base64, ...others } = members;
    const init = { extensions: {} };
    for (const [name, value] of Object.entries(others)) {
      if (KNOWN.has(name)) init[name] = value;
      else if (value !== null) init.extensions[name] = value;
    }
    return new Event(init, { ...wire, base64: base64 ?? undefined });
  }

  /**
   * The data: what JSON can hold, or a `Buffer`. `undefined` where the event has none. Binary data
   * of a JSON content type becomes what the JSON says.
   */
  get data() {
    if (this.#base64 !== undefined) {
      const bytes = Buffer.from(this.#base64, "base64");
      const isJson = JSON_TYPE.test(this.datacontenttype ?? "");
      if (isJson) this.#dataText = bytes.toString("utf8");
      this.#data = isJson ? JSON.parse(this.#dataText) : bytes;
      this.#base64 = undefined;
    }
    this.#wasRead = true;
    return this.#data;
  }

  /** The event as JSON text: as it came, or as it will go. Numbers have all their digits here. */
  get raw() {
    return this.#raw ?? this.toText();
  }

  /** `time` as a `Date`, to the millisecond; a leap second as the second before. */
  get timestamp() {
    if (this.time === undefined) return undefined;
    return new Date(this.time.replace(/^(\S+) /, "$1T").replace(/:60(?=[.Zz+-])/, ":59"));
  }

  /**
   * A new event that this one has led to. Its `source` is the worker's, its `subject` that of this
   * event, its `time` now. Its `id` follows from this event and the new type, so that another
   * attempt at this event makes the same id, and whoever reads both can tell. greenroom adds the
   * extensions `correlationid`, `causationid` and `traceparent`.
   *
   * @param {string} type
   * @param {unknown} [data]
   * @param {Partial<import("../index.d.ts").EventInit>} [attributes]
   */
  derive(type, data, attributes = {}) {
    return new Event({
      subject: this.subject,
      ...attributes,
      id: attributes.id ?? this.#nextId(type),
      source: attributes.source ?? this.#madeBy ?? "/workers",
      time: attributes.time ?? new Date(),
      type,
      data,
    });
  }

  #nextId(type) {
    const count = (this.#derived.get(type) ?? 0) + 1;
    this.#derived.set(type, count);
    return uuid5([this.source, this.id, type, count].join("\n"));
  }

  /**
   * This event with other attributes or other data: the same id from the same source. `extensions`
   * are added to those of the event; one that is `null` is taken away. It throws a `TypeError`
   * at a name that is no attribute.
   *
   * @param {Partial<import("../index.d.ts").EventInit>} changes
   */
  replace(changes) {
    const extensions = Object.entries({ ...this.extensions, ...changes.extensions });
    const same = Object.fromEntries([...REQUIRED, ...OPTIONAL].map((name) => [name, this[name]]));
    const init = { ...same, data: this.#data, ...changes };
    init.extensions = Object.fromEntries(extensions.filter(([, value]) => value != null));
    const madeBy = this.#madeBy;
    if ("data" in changes) return new Event(init, { madeBy });
    // Both events share the data now: a change in place through one changes the other.
    this.#wasRead = true;
    const at = this.#raw?.indexOf(BEFORE_DATA) ?? -1;
    const came = at < 0 ? undefined : this.#raw.slice(at + BEFORE_DATA.length, -1);
    return new Event(init, { madeBy, base64: this.#base64, dataText: this.#dataText ?? came });
  }

  /** The members of the JSON format. */
  toJSON() {
    const members = { specversion: "1.0", id: this.id, source: this.source, type: this.type };
    for (const name of OPTIONAL) {
      if (this[name] !== undefined) members[name] = this[name];
    }
    Object.assign(members, this.extensions);
    const data = this.#data;
    if (this.#base64 !== undefined) {
      members.data_base64 = this.#base64;
    } else if (data instanceof Uint8Array) {
      members.data_base64 = Buffer.from(data.buffer, data.byteOffset, data.length).toString("base64");
    } else if (data !== undefined) {
      members.data = data;
    }
    return members;
  }

  /**
   * The event in the JSON format, on one line; an event that came in and was not changed keeps its
   * text. It throws where the data has something that JSON cannot hold.
   */
  toText() {
    if (this.#raw !== undefined && !this.isChanged()) return this.#raw;
    const members = this.toJSON();
    const data = members.data;
    delete members.data;
    const head = JSON.stringify(members);
    if (data === undefined) return head;
    const text = says(this.#dataText, data) ? this.#dataText : exactly(data);
    return `${head.slice(0, -1)}${BEFORE_DATA}${text}}`;
  }

  /** Whether a handler has changed the data in place, which nothing keeps it from. */
  isChanged() {
    if (this.#raw === undefined || !this.#wasRead || typeof this.#data !== "object") return false;
    const came = Event.fromJSON(this.#raw).data;
    try {
      return JSON.stringify(came) !== JSON.stringify(this.#data);
    } catch {
      // What cannot be written, since it is nested too deeply or contains itself, is refused there.
      return true;
    }
  }
}

/** Whether this is JSON and says this data. */
function says(text, data) {
  try {
    return text !== undefined && JSON.stringify(JSON.parse(text)) === JSON.stringify(data);
  } catch {
    return false;
  }
}

function textOf(name, value) {
  if (value == null) return undefined;
  if (name === "time" && value instanceof Date) return value.toISOString();
  if (typeof value !== "string") {
    throw new TypeError(`\`${name}\` must be a string, not ${typeof value}`);
  }
  if (value === "") throw new TypeError(`\`${name}\` must not be empty`);
  return value;
}

function extensionsOf(given) {
  for (const [name, value] of Object.entries(given)) {
    if (!NAME.test(name) || KNOWN.has(name)) {
      throw new TypeError(`"${name}" is no name for an extension: use lower-case letters and digits`);
    }
    if (typeof value !== "string" && typeof value !== "boolean" && !Number.isSafeInteger(value)) {
      throw new TypeError(`the extension \`${name}\` must be a string, a boolean or a whole number`);
    }
  }
  return Object.freeze({ ...given });
}

function uuid5(name) {
  const bytes = createHash("sha1").update(NAMESPACE).update(wellFormed(name)).digest().subarray(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x50;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Lone surrogates become question marks, as in Python. */
function wellFormed(text) {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "?");
}

/** As JSON. NaN and the infinities, which would become `null`, and functions are refused. */
function exactly(data) {
  const text = JSON.stringify(data);
  if (text === undefined) throw new TypeError(`JSON cannot hold a ${typeof data}`);
  if (text.includes("null")) {
    JSON.stringify(data, (_, value) => {
      if (typeof value === "number" && !Number.isFinite(value)) {
        throw new TypeError(`JSON cannot hold the number ${value}`);
      }
      return value;
    });
  }
  return text;
}
