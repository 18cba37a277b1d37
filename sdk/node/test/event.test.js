import assert from "node:assert/strict";
import { test } from "node:test";

import { Event } from "greenroom-worker";
import { event } from "greenroom-worker/testing";

function parsed(member = "", attributes = {}) {
  const head = JSON.stringify({ specversion: "1.0", id: "1", source: "/s", type: "t", ...attributes });
  return Event.fromJSON(`${head.slice(0, -1)}${member}}`);
}

test("attributes and extensions are typed", () => {
  const found = parsed("", { subject: "a", tenant: "x", size: 3, hot: true, gone: null });
  assert.deepEqual([found.subject, found.time], ["a", undefined]);
  assert.deepEqual({ ...found.extensions }, { tenant: "x", size: 3, hot: true });
});

test("binary data is decoded when it is asked for", () => {
  assert.deepEqual(parsed(',"data_base64":"/wA="').data, Buffer.from([255, 0]));
  const json = parsed(',"data_base64":"eyJhIjoxfQ=="', { datacontenttype: "application/json" });
  assert.deepEqual(json.data, { a: 1 });
});

test("an event keeps its text until its data is changed", () => {
  const text = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data": {"n": 12345678901234567890}}';
  const found = Event.fromJSON(text);
  assert.equal(typeof found.data.n, "number");
  assert.equal(found.toText(), text);
  found.data.n = 2;
  assert.deepEqual(JSON.parse(found.toText()).data, { n: 2 });
});

test("replace keeps the digits of numbers that JavaScript has not", () => {
  const made = parsed(',"data":{"n":12345678901234567890,"m":1.0}').replace({ subject: "b" });
  assert.ok(made.toText().endsWith('"data":{"n":12345678901234567890,"m":1.0}}'), made.toText());
  assert.equal(made.replace({ subject: "c" }).toText().split("1234567890123").length, 2);
  assert.deepEqual(JSON.parse(made.replace({ data: 1 }).toText()).data, 1);
});

test("writing and reading gives the same event", () => {
  for (const data of [undefined, null, 1, "tëxt\u2028\ud800", { a: [1.5, null] }, Buffer.from([0, 255])]) {
    const made = event("t", data, { subject: "s", extensions: { tenant: "x" } });
    const again = Event.fromJSON(made.toText());
    assert.deepEqual(again.toJSON(), made.toJSON());
    assert.deepEqual(again.data, made.data);
  }
});

test("what JSON cannot hold is refused and does not become null", () => {
  for (const data of [NaN, { n: -Infinity }, [1n], () => 1, Symbol("x")]) {
    assert.throws(() => event("t", data).toText(), TypeError);
  }
  assert.ok(event("t", { n: null }).toText().endsWith('"data":{"n":null}}'));
});

test("an event does not change", () => {
  const made = event();
  assert.throws(() => { made.subject = "x"; }, TypeError);
  assert.throws(() => { made.extensions.a = "b"; }, TypeError);
});

test("what CloudEvents does not allow is refused at once", () => {
  const wrong = [
    { id: "" }, { id: null }, { subject: 3 }, { time: 3 }, { time: new Date(NaN) },
    { extensions: { Tenant: "x" } }, { extensions: { data: 1 } }, { extensions: { a: 1.5 } },
  ];
  for (const attributes of wrong) {
    assert.throws(() => event("t", undefined, attributes), undefined, JSON.stringify(attributes));
  }
  for (const text of ["[]", "null", '{"specversion":"0.3"}', '{"specversion":"1.0","id":"1"}']) {
    assert.throws(() => Event.fromJSON(text), TypeError);
  }
});

test("a derived event has the same id at each attempt", () => {
  const cause = parsed("", { subject: "a" });
  const ids = ["x", "x", "y"].map((type) => cause.derive(type).id);
  assert.equal(new Set(ids).size, 3);
  assert.equal(parsed("").derive("x").id, ids[0]);
  // The test of the package for Python has the same.
  assert.equal(event("a.b").derive("x").id, "43ee13ef-2832-572b-b71d-5122df979065");
});

test("a derived event has the subject of its cause and its own time", () => {
  const made = parsed("", { subject: "a" }).derive("x", { n: 1 });
  assert.deepEqual([made.type, made.subject, made.data], ["x", "a", { n: 1 }]);
  assert.ok(Date.now() - made.timestamp < 60_000);
  assert.equal(parsed("", { subject: "a" }).derive("x", 1, { subject: null }).subject, undefined);
});

test("replace keeps what is not named", () => {
  const found = parsed(',"data":{"n":1}', { subject: "a", tenant: "x" });
  const made = found.replace({ subject: "b", extensions: { tenant: null, zone: "y" } });
  assert.deepEqual([made.id, made.subject, made.data], ["1", "b", { n: 1 }]);
  assert.deepEqual({ ...made.extensions }, { zone: "y" });
});

test("replace keeps the text of binary data", () => {
  const found = parsed(',"data_base64":"eyJhIjoxLjEwfQ=="', { datacontenttype: "application/json" });
  assert.ok(found.replace({ subject: "b" }).toText().includes('"eyJhIjoxLjEwfQ=="'));
  assert.deepEqual(found.data, { a: 1.1 });
  assert.ok(found.replace({ subject: "b" }).toText().endsWith('"data":{"a":1.10}}'));
});

test("data that is changed in place around a replace goes on as it is now", () => {
  const found = parsed(',"data":{"n":1}');
  const made = found.replace({ subject: "b" });
  made.data.n = 2;
  for (const given of [found, made, made.replace({ subject: "c" })]) {
    assert.ok(given.toText().endsWith('"data":{"n":2}}'), given.toText());
  }
});

test("the text of data is found only where it is the last member", () => {
  const text = '{"a":"b","data":{"a":1,"data":2},"specversion":"1.0","id":"1","source":"/s","type":"t"}';
  const made = Event.fromJSON(text).replace({ subject: "b" });
  assert.deepEqual(JSON.parse(made.toText()).data, { a: 1, data: 2 });
});

test("a name that is no attribute is refused and not ignored", () => {
  for (const wrong of [{ Foo: "x" }, { tenant: "x" }, { specversion: "1.0" }, { subjct: undefined }]) {
    assert.throws(() => event().replace(wrong), /is no attribute/);
    assert.throws(() => event().derive("x", 1, wrong), /is no attribute/);
    assert.throws(() => event("t", 1, wrong), /is no attribute/);
  }
  assert.equal(event().replace({ extensions: { tenant: "x" } }).extensions.tenant, "x");
});

test("times are read with their offset", () => {
  const made = event("t", 1, { time: "2026-01-31T12:00:00.1234567+01:30" });
  assert.equal(made.timestamp.toISOString(), "2026-01-31T10:30:00.123Z");
  for (const time of ["2026-06-30T23:59:60.5Z", "2026-07-01 01:29:60.5+01:30"]) {
    assert.equal(event("t", 1, { time }).timestamp.toISOString(), "2026-06-30T23:59:59.500Z");
  }
});
