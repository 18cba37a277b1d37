// A greenroom that runs, the targets that it calls, and a browser that looks at it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const BINARY = resolve(process.env.GREENROOM ?? "../target/debug/greenroom");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** What handlers call. Refuses, is slow, or hangs, by the path; `mended` takes what was refused. */
export class Targets {
  mended = false;
  mailsMended = false;

  async start() {
    this.server = createServer((request, response) => {
      request.resume();
      const answer = (status, after = 0) => setTimeout(() => response.writeHead(status).end(), after);
      if (request.url === "/billing") return answer(this.mended ? 200 : 422);
      if (request.url === "/mail") return answer(this.mailsMended ? 200 : 422);
      if (request.url === "/erp") return answer(200, 20 + Math.random() ** 6 * 4_000);
      // The last one hangs until the connection is closed.
      return undefined;
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

export class Greenroom {
  constructor(port) {
    this.directory = mkdtempSync(join(tmpdir(), "greenroom-dashboard-"));
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    writeFileSync(join(this.directory, "in.ndjson"), "");
  }

  configure(text) {
    writeFileSync(join(this.directory, "greenroom.yaml"), text);
  }

  async start() {
    this.child = spawn(BINARY, ["run", "greenroom.yaml"], { cwd: this.directory, stdio: ["ignore", "ignore", "pipe"] });
    this.log = "";
    this.child.stderr.on("data", (data) => (this.log = (this.log + data).slice(-200_000)));
    this.ended = once(this.child, "exit");
    const answers = until(() => this.log.includes("the dashboard is at"), "the listener is open", 20_000);
    await Promise.race([answers, this.ended.then(() => Promise.reject(new Error(`greenroom has ended:\n${this.log}`)))]);
  }

  /** Ends it at once, as a crash would. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    if (this.child && this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Events, as lines of the file that is followed. */
  write(type, subjects, data = {}) {
    const lines = subjects.map((subject, place) =>
      JSON.stringify({ specversion: "1.0", id: `${type}-${subject}-${place}-${Math.random()}`, source: "/test", type, subject, data }),
    );
    appendFileSync(join(this.directory, "in.ndjson"), lines.map((line) => `${line}\n`).join(""));
  }

  async get(path, token) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    return (await fetch(this.url + path, { headers })).json();
  }

  file(name) {
    return readFileSync(join(this.directory, name), "utf8");
  }
}

/** A playground that runs. */
export class Playground {
  async start() {
    this.child = spawn(BINARY, ["demo", "--playground", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
    this.log = "";
    this.child.stderr.on("data", (data) => (this.log += data));
    this.ended = once(this.child, "exit");
    const address = until(() => /http:\/\/[\d.:]+/.exec(this.log), "it says its address", 20_000);
    const ended = this.ended.then(() => Promise.reject(new Error(`the playground has ended:\n${this.log}`)));
    [this.url] = await Promise.race([address, ended]);
  }

  async state() {
    return (await fetch(`${this.url}/api/playground`)).json();
  }

  async setting(name) {
    return (await this.state()).settings.find((setting) => setting.name === name).value;
  }

  /** As by Ctrl-C. */
  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGINT");
    await this.ended.catch(() => {});
    return this.child.exitCode;
  }
}

/** Tries again until it is so. */
export async function until(is, what, within = 10_000) {
  const late = Date.now() + within;
  for (;;) {
    const found = await is();
    if (found) return found;
    if (Date.now() > late) throw new Error(`did not come within ${within} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export function launch() {
  const root = process.getuid?.() === 0;
  return chromium.launch({ executablePath: CHROMIUM, args: root ? ["--no-sandbox"] : [] });
}

/** A page that fails the test if its console gets an error, or if it breaks its policy. */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`${error}`));
  page.on("console", (message) => {
    // That a daemon is gone, or wants a token, is what some tests are about.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) page.faults.push(message.text());
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  return page;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Nothing was written to the console, and nothing has broken the policy. */
export async function assertQuiet(page) {
  assert.deepEqual(page.faults, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
}

/** The breaches of accessibility that axe finds. */
export async function breaches(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
}

/** A run with something of everything: quick, slow, stuck handlers, parked keys, dead letters. */
export function config({ port, targets, tokens = "", fleet = 0 }) {
  const more = fleet
    ? {
        input: "\n  fleet: { generator: { rate: 700/s, keys: 20000, zipf: 0, types: [vehicle.moved] } }",
        pool: `\n  fleet: { workers: ${fleet}, queue: 4096 }`,
        handler: "\n  positions: { on: vehicle.moved, order_by: subject, pool: fleet, simulate: { latency: 20ms..1900ms, failures: 0 } }",
      }
    : { input: "", pool: "", handler: "" };
  return `
inputs:
  orders: { generator: { rate: 240/s, keys: 4000, zipf: 0.6, types: [order.placed, order.paid] } }
  changes: { file: { path: in.ndjson, follow: true } }${more.input}
pools:
  default: { workers: 16, queue: 2000 }
  erp: { workers: 96, queue: 500 }
  billing: { workers: 4, queue: 200, on_final_failure: park }${more.pool}
handlers:
  orders: { on: order.placed, order_by: subject, simulate: { latency: 2ms..30ms, failures: 0 } }
  stock: { on: order.paid, order_by: subject, pool: erp, http: { url: '${targets.url}/erp' } }
  billing: { on: invoice.issued, order_by: subject, pool: billing, http: { url: '${targets.url}/billing' }, retry: { attempts: 1 } }
  mails: { on: mail.wanted, order_by: subject, http: { url: '${targets.url}/mail' }, retry: { attempts: 1 } }
  hangs: { on: never.answered, order_by: subject, pool: billing, http: { url: '${targets.url}/hang', timeout: 1h } }${more.handler}
outputs: { done: { file: { path: done.ndjson } } }
dead_letters: { store: { mask: [/data/card] } }
admin: { listen: '127.0.0.1:${port}'${tokens} }
`;
}
