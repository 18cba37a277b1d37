import assert from "node:assert/strict";
import { test } from "node:test";

import { Reject, Release, Retry, Worker } from "greenroom-worker";
import { event, handle } from "greenroom-worker/testing";

import { covers, parse } from "../src/pattern.js";

/** What a handler came to, and what it said on standard error. */
async function quietly(handler, given = event()) {
  const { write } = process.stderr;
  let said = "";
  process.stderr.write = (text) => { said += text; return true; };
  try {
    return [await handle(handler, given), said];
  } finally {
    process.stderr.write = write;
  }
}

const raising = (thrown) => () => { throw thrown; };

test("what a handler returns decides", async () => {
  const cases = [
    [() => undefined, "success", 0],
    [() => null, "success", 0],
    [(e) => e, "pass", 0],
    [async (e) => e, "pass", 0],
    [(e) => e.derive("x"), "success", 1],
    [(e) => [e.derive("x"), e], "success", 2],
    [function* (e) { yield e.derive("x"); yield e; }, "success", 2],
    [async function* (e) { yield e.derive("x"); }, "success", 1],
    [() => [], "success", 0],
  ];
  for (const [handler, kind, count] of cases) {
    const outcome = await handle(handler, event());
    assert.deepEqual([outcome.kind, outcome.events.length], [kind, count]);
  }
});

test("an event that was changed in place goes on as it is now", async () => {
  const handler = (e) => { e.data.seen = true; return e; };
  const outcome = await handle(handler, event("t", { n: 1 }));
  assert.ok(outcome.events[0].toText().includes('"seen":true'));
});

test("what a handler throws decides", async () => {
  const cases = [
    [new Retry({ after: 2 }), ["failure", undefined, 2]],
    [new Retry("busy", { after: 0.5 }), ["failure", "busy", 0.5]],
    [new Reject("no"), ["reject", "no", undefined]],
    [new Release(), ["released", undefined, undefined]],
    [new RangeError("odd"), ["failure", "RangeError: odd", undefined]],
    ["just a text", ["failure", "just a text", undefined]],
    [Object.create(null), ["failure", "[Object: null prototype] {}", undefined]],
  ];
  for (const [thrown, expected] of cases) {
    for (const handler of [raising(thrown), () => Promise.reject(thrown)]) {
      const [outcome] = await quietly(handler);
      assert.deepEqual([outcome.kind, outcome.error, outcome.retryAfter], expected);
      assert.equal(outcome.exception, thrown);
    }
  }
});

test("only what was not expected has its stack on standard error", async () => {
  assert.match((await quietly(raising(new Error("x"))))[1], /Error: x\n +at /);
  assert.equal((await quietly(raising(new Retry("x"))))[1], "");
});

test("waits that are none are refused", () => {
  for (const after of [-1, NaN, Infinity, 1e12]) {
    assert.throws(() => new Retry({ after }), RangeError);
  }
});

test("a wait of null is none: the backoff decides", async () => {
  const [outcome] = await quietly(() => { throw new Retry({ after: null }); });
  assert.deepEqual([outcome.kind, outcome.retryAfter], ["failure", undefined]);
});

test("an error half-way through a generator sends nothing", async () => {
  const [outcome] = await quietly(function* (e) { yield e.derive("x"); throw new Error("half"); });
  assert.deepEqual([outcome.kind, outcome.events], ["failure", []]);
});

test("what cannot be sent rejects the event", async () => {
  const loop = [];
  loop.push(loop);
  for (const data of [NaN, 1n, loop, () => 1]) {
    const [outcome] = await quietly((e) => e.derive("x", data));
    assert.equal(outcome.kind, "reject");
    assert.match(outcome.error, /cannot be written/);
  }
  const [outcome] = await quietly((e) => e.derive("x", Buffer.alloc(13_000_000)));
  assert.match(outcome.error, /more than 16777216/);
});

test("results of a wrong kind reject the event", async () => {
  for (const result of [true, 3, "text", { a: 1 }, [null], [{}]]) {
    assert.equal((await handle(() => result, event())).kind, "reject");
  }
});

test("the most specific handler gets the event", async () => {
  const seen = [];
  const worker = new Worker();
  for (const text of ["order.**", "order.*", "order.placed", "*.placed"]) {
    worker.on(text, () => { seen.push(text); });
  }
  for (const type of ["order.placed", "order.changed", "order.line.added", "bill.placed", "order"]) {
    await handle(worker, event(type));
  }
  assert.deepEqual(seen, ["order.placed", "order.*", "order.**", "*.placed", "order.**"]);
  assert.match((await handle(worker, event("other"))).error, /no handler/);
});

test("patterns cover as those of greenroom do", () => {
  const cases = [
    ["**", "a.b", true], ["a.**", "a", true], ["a.**.b", "a.b", true], ["a.**.b", "a.x.b.y.b", true],
    ["a.**.b", "a.x", false], ["a.*", "a", false], ["a.*", "a.b.c", false], ["*", "a", true],
    ["**.a.**.b", "x.a.a.b.a", false],
  ];
  for (const [pattern, type, expected] of cases) {
    assert.equal(covers(parse(pattern), type), expected, `${pattern} ${type}`);
  }
});

test("patterns that cannot be used are refused", () => {
  const worker = new Worker().on("a", () => {});
  for (const pattern of ["", "a..b", "a.b*", "a"]) {
    assert.throws(() => worker.on(pattern, () => {}), TypeError);
  }
  assert.throws(() => worker.on("b", undefined), TypeError);
  assert.throws(() => worker.on([], () => {}), TypeError);
});

test("an option that there is not is refused", () => {
  assert.throws(() => new Worker({ recycle_after: 5 }), /no option "recycle_after"/);
});

test("a worker gives its source to what it derives", async () => {
  const worker = new Worker({ source: "/prices" }).on("**", (e) => e.derive("x"));
  assert.equal((await handle(worker, event())).events[0].source, "/prices");
  const replacing = new Worker({ source: "/prices" })
    .on("**", (e) => e.replace({ subject: "b" }).derive("x"));
  assert.equal((await handle(replacing, event())).events[0].source, "/prices");
});
