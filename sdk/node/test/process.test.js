// Workers as processes, with this test in greenroom's place.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { test } from "node:test";

const PACKAGE = new URL("../src/index.js", import.meta.url);
const HEAD = `import { Reject, Retry, Worker, run } from ${JSON.stringify(PACKAGE.href)};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;

/** A worker with this program, and what it is told and tells. */
class Process {
  token = 0;
  err = "";

  constructor(program, env = { GREENROOM_PROTOCOL: "1" }, whole = HEAD + program) {
    this.child = spawn(process.execPath, ["--input-type=module", "-e", whole], {
      // Where the package finds itself by its name.
      cwd: new URL("..", import.meta.url),
      env: { ...process.env, ...env },
    });
    this.child.stderr.on("data", (text) => { this.err += text; });
    this.child.stdin.on("error", () => {});
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    this.ended = once(this.child, "close");
  }

  send(data, attributes = {}) {
    this.token += 1;
    const event = { specversion: "1.0", id: "1", source: "/s", type: "t", ...attributes, data };
    this.write(`{"token":"${this.token}","attempt":1,"event":${JSON.stringify(event)}}\n`);
  }

  write(text) {
    this.child.stdin.write(text);
  }

  async answer() {
    const { value } = await this.lines.next();
    assert.notEqual(value, undefined, `no answer: ${this.err}`);
    const line = JSON.parse(value);
    if (!line.heartbeat) assert.equal(line.token, String(this.token));
    return line;
  }

  ask(data, attributes) {
    this.send(data, attributes);
    return this.answer();
  }

  /** Closes its standard input: the code, and what else it printed. */
  async end() {
    this.child.stdin.end();
    return this.over();
  }

  async over() {
    const rest = [];
    for await (const line of this.lines) rest.push(line);
    const [code, signal] = await this.ended;
    return [code ?? signal, rest];
  }

  async says(text) {
    while (!this.err.includes(text)) await once(this.child.stderr, "data");
  }
}

test("an event that is nested too deeply is rejected and ends no process", async () => {
  const worker = new Process("run((event) => (event.data === 0 ? undefined : event))");
  for (const depth of [1_000, 5_000, 200_000]) {
    worker.token += 1;
    const data = "[".repeat(depth) + "]".repeat(depth);
    const event = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":${data}}`;
    worker.write(`{"token":"${worker.token}","attempt":1,"event":${event}}\n`);
    const { outcome, error } = await worker.answer();
    assert.ok(outcome === "pass" || (outcome === "reject" && /call stack/.test(error)), error);
    if (depth === 200_000) assert.equal(outcome, "reject");
  }
  assert.equal((await worker.ask(0)).outcome, "success");
  assert.equal((await worker.end())[0], 0);
});

test("a worker is told the fence of an event, which keeps its text", async () => {
  const worker = new Process(`run((event) => event.derive("x", [event.fence ?? null, event.raw]));`);
  const event = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1.50}';
  worker.token = 1;
  worker.write(`{"token":"1","attempt":1,"greenroom-fence":7,"event":${event}}\n`);
  assert.deepEqual((await worker.answer()).events[0].data, [7, event]);
  assert.equal((await worker.ask()).events[0].data[0], null);
  assert.deepEqual(await worker.end(), [0, []]);
});

test("events are answered until standard input ends", async () => {
  const worker = new Process(`
    setInterval(() => {}, 1000); // what is left open does not keep the process
    await run((e) => Array(e.data).fill(0).map(() => e.derive("x")), { close: () => console.log("closed") });`);
  for (const count of [2, 0, 1]) {
    assert.equal(((await worker.ask(count)).events ?? []).length, count);
  }
  assert.deepEqual(await worker.end(), [0, []]);
  assert.match(worker.err, /closed/);
});

test("the first worker of the README works", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const worker = new Process("", { GREENROOM_PROTOCOL: "1" }, readme.split("```js\n")[1].split("```")[0]);
  const { events } = await worker.ask({ price: 7, count: 2 }, { subject: "a" });
  assert.deepEqual([events[0].type, events[0].subject, events[0].data], ["price.set", "a", { total: 14 }]);
  assert.equal((await worker.ask({ count: 0 })).error, "nothing was ordered");
  assert.equal((await worker.end())[0], 0);
});

test("what user code prints does not touch the protocol", async () => {
  const worker = new Process(`
    console.log("before");
    run((e) => {
      console.log("printed", process.env.GREENROOM_PROTOCOL);
      process.stdout.write("written\\n");
      return e;
    });`);
  for (let n = 0; n < 2; n += 1) assert.equal((await worker.ask()).outcome, "pass");
  assert.deepEqual(await worker.end(), [0, []]);
  for (const said of ["before", "printed undefined", "written"]) assert.ok(worker.err.includes(said));
});

test("a failure is told and its stack is on standard error", async () => {
  const worker = new Process("run(async () => { throw new RangeError('odd'); });");
  const { outcome, error } = await worker.ask();
  assert.deepEqual([outcome, error], ["failure", "RangeError: odd"]);
  assert.equal((await worker.end())[0], 0);
  assert.match(worker.err, /RangeError: odd\n +at /);
});

test("retries have their time in whole milliseconds", async () => {
  const worker = new Process("run(() => { throw new Retry('busy', { after: 0.0501 }); });");
  assert.equal((await worker.ask()).retry_after_ms, 51);
  await worker.end();
});

test("large lines and every text go both ways", async () => {
  const worker = new Process("run((e) => e.derive('x', e.data));");
  for (const data of ["x".repeat(5_000_000), "ü\u2028\u2029\r\u{1f600}", "\ud800", 1e300]) {
    assert.equal((await worker.ask(data)).events[0].data, data);
  }
  assert.equal((await worker.end())[0], 0);
});

test("an error text is always what greenroom can read", async () => {
  const worker = new Process("run(() => { throw new Reject('\\ud800' + 'x'.repeat(1e5)); });");
  const { error } = await worker.ask();
  assert.ok(error.startsWith("\ufffd") && error.length === 4096);
  await worker.end();
});

test("at SIGTERM what is in hand is finished", async () => {
  const worker = new Process(`
    await run(async (e) => { console.log("begun"); await sleep(200); return e; }, { close: () => console.log("closed") });`);
  worker.send();
  await worker.says("begun");
  worker.child.kill("SIGTERM");
  assert.equal((await worker.answer()).outcome, "pass");
  assert.deepEqual(await worker.over(), [0, []]);
  assert.match(worker.err, /closed/);
});

test("an idle worker ends at SIGTERM", async () => {
  const worker = new Process("run((e) => e);");
  await worker.ask();
  worker.child.kill("SIGTERM");
  assert.deepEqual(await worker.over(), [0, []]);
});

test("a worker that is to be recycled ends with code 0", async () => {
  const worker = new Process("run((e) => e, { recycleAfter: 2 });");
  await worker.ask();
  await worker.ask();
  assert.deepEqual(await worker.over(), [0, []]);
});

test("a handler that ends the process, or never comes back, is a crash", async () => {
  const cases = [
    ["process.exit(0)", 1],
    ["process.exit(7)", 7],
    ["return new Promise(() => {})", undefined],
    ["Promise.reject(new Error('nobody listens')); return sleep(2000)", 1],
    ["setTimeout(() => { throw new Error('later'); }, 1); return sleep(2000)", 1],
  ];
  for (const [leaving, code] of cases) {
    const worker = new Process(`run(() => { ${leaving}; });`);
    worker.send();
    if (code === undefined) worker.child.stdin.end();
    const [found, rest] = await worker.over();
    assert.deepEqual([found, rest], [code ?? found, []], worker.err);
    assert.notEqual(found, 0);
    assert.match(worker.err, /event in hand|nobody listens|later|^$/);
  }
});

test("a line that is no event ends the worker with a reason", async () => {
  for (const line of ["hello", '{"specversion":"1.0"}', '{"token":"1","attempt":1,"event":{}}', "null"]) {
    const worker = new Process("run(() => {});");
    worker.write(`${line}\n`);
    assert.deepEqual(await worker.over(), [1, []]);
    assert.match(worker.err, /no event from greenroom/);
  }
});

test("an unfinished line at the end is no event", async () => {
  const worker = new Process("run(() => console.log('called'));");
  worker.write('{"token":"1","attempt":1,"event":{"specversion"');
  assert.deepEqual(await worker.end(), [0, []]);
  assert.equal(worker.err, "");
});

test("heartbeats come while an event is in hand", async () => {
  const worker = new Process("run((e) => sleep(e.data), { heartbeat: 0.02 });");
  worker.send(300);
  let beats = 0;
  while ((await worker.answer()).heartbeat) beats += 1;
  assert.ok(beats > 1, String(beats));
  assert.deepEqual(await worker.end(), [0, []]);
});

test("a worker whose greenroom is gone ends", async () => {
  const worker = new Process("run((e) => e);");
  await worker.ask();
  worker.child.stdout.destroy();
  worker.send();
  const [code] = await once(worker.child, "exit");
  assert.equal(code, 1);
  assert.match(worker.err, /greenroom is gone/);
});

test("a worker without handlers says so", async () => {
  const worker = new Process("new Worker().run();");
  assert.equal((await worker.end())[0], 1);
  assert.match(worker.err, /no handler/);
});
