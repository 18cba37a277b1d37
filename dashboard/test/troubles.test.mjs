// Eleven troubles as an operator meets them. For each, the page has to say what is wrong in its
// headline, what is the root, what follows from it, and what to do.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { Greenroom, freePort, launch, open, until } from "./stage.mjs";

/** A target that answers as it is told: a status, after so long; never where there is none. */
class Target {
  answer = () => ({ status: 200 });

  async start() {
    this.server = createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += part;
      const { status, after = 0 } = this.answer(`${request.headers["ce-subject"] ?? ""}${body}`);
      if (status !== undefined) setTimeout(() => response.writeHead(status).end(), after);
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.url = `http://127.0.0.1:${this.server.address().port}/`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

const http = (url, more = "") => `http: { url: '${url}' ${more} }`;
const orders = "shop: { generator: { rate: 200/s, keys: 200, types: [order] }, run_ahead: 50 }";
const handler = (how, more = "") => `bills: { on: order, order_by: subject, ${how} ${more} }`;

/** Each with what the run is like, how its target answers, and what the page has to say. */
const TROUBLES = {
  "a target that is down": {
    config: () => ({ handlers: handler(http("http://127.0.0.1:9/")) }),
    headline: /The handler `?bills`? is in outage/,
    root: /refused/,
    effect: /input `?shop`? is held/,
    action: /Fix its target[\s\S]*handlers\/bills/,
  },
  "credentials that are rejected": {
    config: (url) => ({ handlers: handler(http(url)) }),
    answer: () => ({ status: 401 }),
    headline: /rejects our credentials/,
    root: /401/,
    effect: /input `?shop`? is held/,
    action: /Correct its credentials[\s\S]*greenroom reload/,
  },
  "an output that refuses": {
    config: (url) => ({ handlers: handler("pass:"), outputs: `ledger: { ${http(url, ", mode: batch")} }` }),
    answer: () => ({ status: 401 }),
    headline: /The output `?ledger`? is paused/,
    root: /401/,
    effect: /Workers of the pool `?work`? wait for the output `?ledger`?[\s\S]*input `?shop`? is held/,
    action: /Correct its options[\s\S]*greenroom output resume ledger/,
  },
  "keys that are parked": {
    config: (url) => ({ pool: ", on_final_failure: park", handlers: handler(http(url), ", retry: { attempts: 1 }") }),
    answer: (text) => ({ status: /key-[12]\b/.test(text) ? 422 : 200 }),
    headline: /keys? waits? for a decision/,
    root: /422/,
    action: /Fix the cause[\s\S]*greenroom key resume \S+ --handler bills --event/,
  },
  "events that nobody handles": {
    config: () => ({ handlers: "others: { on: other, drop: }" }),
    headline: /Dead letters are coming in/,
    root: /100\.0 %\); one of them: no handler/,
    action: /Find out why they failed[\s\S]*greenroom dead-letters list --by group/,
  },
  "a target that has become slow": {
    config: (url) => ({ handlers: handler(http(url)) }),
    answer: (() => {
      const began = Date.now();
      return () => ({ status: 200, after: Date.now() - began > 25_000 ? 400 : 0 });
    })(),
    headline: /The handler `?bills`? has become slow/,
    root: /half of its recent attempts took more than \d+ ms, before that/,
    action: /Look at what its target does/,
    within: 90_000,
  },
  "a target that rejects some": {
    config: (url) => ({ handlers: handler(http(url), ", retry: { attempts: 1 }") }),
    answer: (text) => ({ status: /key-\d*[05]\b/.test(text) ? 422 : 200 }),
    headline: /Dead letters are coming in/,
    root: /one of them of `?bills`?: rejected: [\s\S]*422/,
    action: /greenroom dead-letters list --by group/,
  },
  "an event that never ends": {
    config: (url) => ({ handlers: handler(http(url, ", timeout: 1h")) }),
    answer: (text) => (/key-1\b/.test(text) ? {} : { status: 200 }),
    headline: /Workers of the pool `?work`? make no progress/,
    root: /1 of 8 workers have handled one event for more than 2 s, .* with the key `?key-1`?;/,
    action: /Look at what they handle[\s\S]*pools\/work\/workers/,
  },
  "a program that crashes": {
    config: () => ({ handlers: handler("exec: { command: [sh, -c, 'echo no database >&2; exit 3'] }") }),
    headline: /The program of the handler `?bills`? does not work/,
    root: /exit status: 3[\s\S]*no database/,
    action: /run its `?command`? by hand/,
  },
  "an input that another pool holds": {
    config: (url) => ({
      inputs: "shop: { generator: { rate: 400/s, keys: 200, types: [order, other] }, run_ahead: 50 }",
      handlers: `${handler(http(url, ", timeout: 1h"))}\n  others: { on: other, pool: quick, drop: }`,
      pools: "quick: { workers: 2 }",
    }),
    answer: () => ({}),
    headline: /Workers of the pool `?work`? make no progress/,
    root: /8 of 8 workers/,
    effect: /input `?shop`? is held by the pool `?work`?/,
    action: /pools\/work\/workers/,
  },
  "a key that is the limit": {
    config: (url) => ({ inputs: "shop: { generator: { rate: 400/s, keys: 1, types: [order] } }", handlers: handler(http(url)) }),
    answer: () => ({ status: 200, after: 20 }),
    headline: /One key is the limit of the pool `?work`?/,
    root: /events of it wait, while 7 of 8 workers are idle; that lets through about \d+ a second/,
    action: /More `?workers`? do not help[\s\S]*greenroom why/,
  },
};

describe("of eleven troubles the page says what, why, and what to do", { concurrency: 4 }, () => {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser.close());

  for (const [name, { config, answer, headline, root, effect, action, within = 45_000 }] of Object.entries(TROUBLES)) {
    test(`o14 ${name}`, async () => {
      const [target, greenroom] = [new Target(), new Greenroom(await freePort())];
      await target.start();
      if (answer) target.answer = answer;
      const { inputs = orders, pool = "", pools = "", handlers, outputs = "" } = config(target.url);
      greenroom.configure(`
inputs:
  ${inputs}
pools:
  work: { workers: 8, queue: 200${pool} }
  ${pools}
handlers:
  ${handlers.replace("order_by: subject,", "order_by: subject, pool: work,")}
${outputs ? `outputs:\n  ${outputs}` : ""}
dead_letters: { store: {} }
admin: { listen: '127.0.0.1:${greenroom.port}', metrics: { wedged_after: 2s } }
`);
      try {
        await greenroom.start();
        const page = await open(browser);
        await page.goto(greenroom.url);
        await page.locator("h1", { hasText: headline }).waitFor({ timeout: within });
        const cause = page.locator("ul.problems > li").first();
        const text = async () => (await cause.innerText()).replaceAll("\n", " ");
        await until(async () => root.test(await text()), `the root: ${await text()}`, 30_000);
        if (effect) await until(async () => effect.test(await cause.locator(".effects").innerText()), "what follows from it", 30_000);
        const advice = page.locator("ul.advice > li").first();
        await until(async () => action.test(await advice.innerText()), `what to do: ${await advice.innerText()}`);
        assert.match(await page.title(), headline, "the title tells it as well");
        assert.deepEqual(page.faults, []);
        await page.context().close();
      } finally {
        await greenroom.stop();
        target.stop();
      }
    });
  }
});
