// The dashboard in a real browser, beside a greenroom that really runs.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Greenroom, Targets, assertQuiet, breaches, config, freePort, launch, open, until } from "./stage.mjs";

const FLEET = 1024;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** What the daemon found, and its verdict of that. */
function finding(severity, about) {
  return { severity, about, what: about, figures: "1", why: "w", change: "c", lines: null, ask: null, command: null, lasted_ms: null, follows: null };
}

function health(findings) {
  const worst = ["critical", "warning"].find((severity) => findings.some((one) => one.severity === severity));
  const causes = findings.filter(({ follows, severity }) => follows === null && severity !== "hint");
  const more = causes.length > 1 ? `; ${causes.length - 1} more` : "";
  return { health: { critical: "red", warning: "yellow" }[worst] ?? "green", headline: worst ? causes[0].what + more : "All is well", findings };
}

const live = (page) => page.locator(".pulse.is-live").waitFor();
const toast = (page, text) => page.locator(".toast", { hasText: text }).first().waitFor();

async function look(url, options) {
  const page = await open(browser, options);
  await page.goto(url);
  await live(page);
  return page;
}

describe("a page beside a greenroom under load", () => {
  const targets = new Targets();
  let greenroom;
  let page;

  before(async () => {
    await targets.start();
    greenroom = new Greenroom(await freePort());
    greenroom.configure(config({ port: greenroom.port, targets, fleet: FLEET }));
    await greenroom.start();
    greenroom.write("invoice.issued", ["first", "second", "second", "third", "third", "third"]);
    greenroom.write("mail.wanted", ["a", "b", "c"], { card: "4111 1111", text: '<img src=x onerror="window.broken = 1"><script>window.broken = 1</script>' });
    greenroom.write("never.answered", ["forever"]);
    await until(async () => (await greenroom.get("/api/keys")).parked.length === 3, "three keys are parked");
    page = await look(greenroom.url);
  });
  after(async () => {
    await page.context().close();
    await greenroom.stop();
    targets.stop();
  });
  beforeEach(async () => {
    await page.setViewportSize({ width: 1360, height: 900 });
    assert.equal(await page.locator("dialog[open]").count(), 0, "the test before has left a dialog");
  });

  const pool = (name) => page.locator(".item", { has: page.getByRole("button", { name, exact: true }) });
  const row = (name) => page.locator("ul.parked > li", { hasText: name });
  const parked = async () => (await greenroom.get("/api/keys")).parked.map(({ key }) => key).sort();

  /** What the stream says first, and a sample, to be changed. */
  const recorded = async () => {
    const answer = await fetch(`${greenroom.url}/api/live`);
    let text = "";
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.split("\n\n").length > 3) break;
    }
    const [hello, first] = text.split("\n\n");
    return { hello, sample: JSON.parse(first.slice("data: ".length)) };
  };

  /** A page that is told these samples in place of what is so, and then nothing more. */
  const told = async (samples) => {
    const other = await open(browser);
    const body = samples.map((sample) => `data: ${JSON.stringify(sample)}\n\n`).join("");
    const headers = { "content-type": "text/event-stream" };
    await other.route("**/api/live", (route) => route.fulfill({ status: 200, headers, body }));
    await other.goto(greenroom.url);
    await other.locator("h1").waitFor();
    return other;
  };

  test("it is there within a second, and says how all is", async () => {
    const other = await open(browser);
    const began = Date.now();
    await other.goto(greenroom.url);
    await other.locator("h1").waitFor();
    const took = Date.now() - began;
    const paint = await other.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    console.log(`  first paint after ${paint.toFixed(0)} ms, figures after ${took} ms`);
    assert.ok(paint < 1_000, `first paint after ${paint} ms`);
    assert.ok(took < 3_000, `figures after ${took} ms`);
    assert.match(await other.locator("h1").innerText(), /keys wait for a decision/);
    await other.getByText("3 keys wait for a decision", { exact: false }).first().waitFor();
    await assertQuiet(other);
    await other.context().close();
  });

  test("figures move under load, and all that is shown is there", async () => {
    const settled = async () => Number((await page.locator(".figure", { hasText: "Finished in all" }).locator(".value").innerText()).replaceAll(",", ""));
    const first = await settled();
    await until(async () => (await settled()) > first + 500, "events are finished");
    await until(async () => Number((await pool("fleet").locator("[data-name=handled]").innerText()).replace(/[^\d.]/g, "")) > 300, "the rate of the pool");
    for (const part of ["Pools", "Parked keys", "Dead letters", "Inputs", "Handlers and outputs", "Hottest keys", "Events"]) {
      assert.equal(await page.getByRole("heading", { name: part }).count(), 1, part);
    }
    assert.match(await page.locator("#inputs").innerText(), /orders[\s\S]*changes[\s\S]*last finished/);
    assert.match(await page.locator("#targets").innerText(), /done[\s\S]*file:done.ndjson/);
  });

  test("o13 advice says what is so, the figures, why, and what to copy, with the keyboard alone", async () => {
    const advice = page.locator("#advice");
    const keys = advice.locator("li", { hasText: "3 keys wait for a decision" });
    await keys.waitFor();
    assert.match(await keys.innerText(), /warning[\s\S]*keys[\s\S]*6 events wait; \w+ has waited longest[\s\S]*No event of these keys is handled[\s\S]*Fix the cause/);
    const command = await keys.locator("pre").innerText();
    assert.match(command, new RegExp(`^greenroom key resume \\w+ --handler billing( --event \\S+)? ${new URL(greenroom.url).host}$`));
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await keys.locator("pre").focus();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "copy the command for keys");
    await page.keyboard.press("Enter");
    await toast(page, "copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
    for (const scheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme: scheme });
      assert.deepEqual(await breaches(page), [], scheme);
    }
    await assertQuiet(page);
  });

  test("o13 nothing is there where there is nothing to say, and many findings are folded", async () => {
    const { sample } = await recorded();
    const quiet = await told([{ ...sample, health: health([]) }]);
    await quiet.getByRole("heading", { name: "Pools" }).waitFor();
    assert.equal(await quiet.locator("#advice").count(), 0);
    assert.equal(await quiet.getByText("Advice").count(), 0);
    await quiet.context().close();

    const one = (severity, place) => ({
      ...finding(severity, `pools.p${place}`),
      what: `Bursts do not fit into the queue of the pool \`p${place}\``,
      figures: "full 60.0 times a minute, 0.91 used (910 of 1000 per worker on average), p99 40.0 ms, 256 workers 1.00 busy, over 300 s",
      why: "While it is full, events wait beside it.",
      change: "Let more events wait.",
      lines: `pools:\n  p${place}:\n    queue: 2000`,
    });
    const findings = ["critical", "warning", "warning", "hint", "hint", "hint"].map(one);
    const many = await told([{ ...sample, health: health(findings) }]);
    const items = many.locator("#advice > ul > li");
    await items.first().waitFor();
    assert.equal(await items.count(), 4);
    assert.deepEqual(await items.locator(".badge").allInnerTexts(), ["critical", "warning", "warning", "hint"]);
    assert.equal(await items.first().locator("pre").innerText(), "pools:\n  p0:\n    queue: 2000");
    await many.getByRole("button", { name: "Show all 6" }).click();
    assert.equal(await items.count(), 6);
    await many.setViewportSize({ width: 390, height: 844 });
    await until(() => many.evaluate(() => document.documentElement.scrollWidth <= 390), "it needs no scrolling sideways");
    await assertQuiet(many);
    await many.context().close();
  });

  test("1,024 workers are a map that is walked with the keyboard, and hold up no frame", async () => {
    await page.getByRole("button", { name: "fleet", exact: true }).click();
    const map = page.locator("#pool-fleet canvas[role=application]");
    await map.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.locator(".told", { hasText: /^worker 1 / }).waitFor();
    await until(async () => (await page.locator("#pool-fleet table.longest tbody tr").count()) > 3, "what is longest in hand");
    assert.match(await page.locator("#pool-fleet table.longest tbody tr").nth(1).innerText(), /fleet-\d+\s+key-\d+\s+positions\s+1\s+[\d.]+ m?s/);
    const drawn = await map.evaluate((canvas) => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      const colours = new Set();
      for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] === 255) colours.add(`${pixels[at]} ${pixels[at + 1]} ${pixels[at + 2]}`);
      return colours.size;
    });
    assert.ok(drawn >= 2, `${drawn} colours`);
    const longest = await page.evaluate(
      () =>
        new Promise((done) => {
          let [last, longest] = [performance.now(), 0];
          const end = last + 4_000;
          const frame = (now) => {
            longest = Math.max(longest, now - last);
            last = now;
            if (now < end) requestAnimationFrame(frame);
            else done(longest);
          };
          requestAnimationFrame(frame);
        }),
    );
    console.log(`  longest frame ${longest.toFixed(0)} ms`);
    assert.ok(longest < 500, `a frame took ${longest} ms`);
  });

  test("a pool is resized", async () => {
    await page.getByRole("button", { name: "default", exact: true }).click();
    const own = pool("default");
    await own.getByRole("button", { name: "one worker more" }).click();
    await own.getByRole("button", { name: "set the workers of default" }).click();
    await toast(page, "default: 17 workers in place of 16");
    assert.equal((await greenroom.get("/api/pools/default")).workers, 17);
    // To take most of a pool away is asked about.
    await own.getByLabel("Workers", { exact: true }).fill("4");
    await own.getByRole("button", { name: "set the workers of default" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    assert.equal((await greenroom.get("/api/pools/default")).workers, 17);
    await own.getByRole("button", { name: "set the workers of default" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resize" }).click();
    await until(async () => (await greenroom.get("/api/pools/default")).workers === 4, "it has four");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // Several times as many may be a slip.
    await own.getByLabel("Workers", { exact: true }).fill("65536");
    await own.getByRole("button", { name: "set the workers of default" }).click();
    const question = page.getByRole("dialog", { name: "A pool of 4 becomes 65,536 workers?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    assert.equal((await greenroom.get("/api/pools/default")).workers, 4);
    await own.getByLabel("Workers", { exact: true }).fill("80");
    await own.getByRole("button", { name: "set the workers of default" }).click();
    await page.getByRole("dialog", { name: "A pool of 4 becomes 80 workers?" }).getByRole("button", { name: "Resize" }).click();
    await until(async () => (await greenroom.get("/api/pools/default")).workers === 80, "it has eighty");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("a pool is paused and goes on", async () => {
    const own = pool("default");
    await own.getByRole("button", { name: "Pause" }).click();
    await own.locator(".badge", { hasText: "paused" }).waitFor();
    await page.locator(".problems", { hasText: "The pool default is paused" }).waitFor();
    await own.getByRole("button", { name: "Resume" }).click();
    await own.locator(".badge", { hasText: /running|full/ }).waitFor();
    assert.notEqual((await greenroom.get("/api/pools/default")).state, "paused");
  });

  test("it says why a key waits, of a parked one and of one that is being handled", async () => {
    await row("second").getByRole("button", { name: "decide about second" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/1 waiting; head attempt 1 of 1 failed for good, parked for .*422/).waitFor();
    // The event that is decided about is there before the decision.
    assert.match(await dialog.locator("dl.facts").innerText(), /invoice\.issued-second-[\s\S]*invoice\.issued[\s\S]*Attempts\s*1/);
    assert.equal(await dialog.getByLabel("payload").innerText(), "{}");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("forever");
    await page.keyboard.press("Enter");
    await dialog.getByText(/(in hand of|handled by) worker \d+ for/).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("a dialog gives the focus back as it goes, and not later", async () => {
    await row("second").getByRole("button", { name: "decide about second" }).click();
    await page.getByRole("dialog").waitFor();
    const focused = await page.evaluate(async () => {
      document.querySelector("dialog[open]").dispatchEvent(new Event("cancel", { cancelable: true }));
      while (document.querySelector("dialog")) await Promise.resolve();
      const given = document.activeElement.getAttribute("aria-label");
      document.getElementById("find").focus();
      for (let frames = 0; frames < 10; frames++) await new Promise(requestAnimationFrame);
      return [given, document.activeElement.id];
    });
    assert.deepEqual(focused, ["decide about second", "find"]);
  });

  test("a box finds a pool by its name, a key, and the dead letters of a key", async () => {
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("/");
    await page.keyboard.type("er");
    assert.match(await page.getByRole("listbox").innerText(), /erp\s+pool/);
    assert.deepEqual(await breaches(page), []);
    await page.keyboard.type("p");
    await page.keyboard.press("Enter");
    await page.locator("#pool-erp").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), "pools.erp");
    await page.keyboard.press("/");
    await page.keyboard.type("forever");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Why does forever wait?" }).waitFor();
    assert.equal(new URL(page.url()).hash, "#why=forever");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // A dialog gives the focus back to the box.
    await page.keyboard.type("b");
    await page.getByRole("option", { name: /dead letters with this id or key/ }).click();
    await until(async () => (await page.locator("table.letters tbody tr").count()) === 1, "the one letter of that key");
    assert.equal(new URL(page.url()).hash, "#key=b");
    await page.locator("#letters").getByRole("button", { name: "Show all" }).click();
    await until(async () => (await page.locator("table.letters tbody tr").count()) > 1, "all letters");
    await page.getByRole("button", { name: "default", exact: true }).click();
    await assertQuiet(page);
  });

  test("a decision about an event that is not there any more is refused, and the other one is shown", async () => {
    const stale = async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const line of json.lines) if (line.event) line.event.id = "seen-before";
      await route.fulfill({ response, json });
    };
    await page.route((url) => url.pathname === "/api/keys" && url.searchParams.get("key") === "second", stale, { times: 1 });
    await row("second").getByRole("button", { name: "decide about second" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "skip seen-before with billing" }).click();
    await dialog.getByRole("alert").filter({ hasText: "invoice.issued-second" }).waitFor();
    await dialog.getByRole("button", { name: /^skip invoice\.issued-second-/ }).waitFor();
    assert.deepEqual(await parked(), ["first", "second", "third"]);
    assert.deepEqual(await breaches(page), []);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("keys with the same error are decided about together, after their number was told", async () => {
    await page.getByRole("button", { name: "decide about all with this error of billing" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("3 keys are parked with billing because of an error like this:").waitFor();
    assert.match(await dialog.getByLabel("the error").innerText(), /422/);
    assert.ok(await dialog.getByRole("button", { name: "Drop 3 keys" }).isEnabled());
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(await parked(), ["first", "second", "third"]);
  });

  test("a parked key is skipped and another dropped, each after its event was shown", async () => {
    const dialog = page.getByRole("dialog");
    await row("second").getByRole("button", { name: "decide about second" }).click();
    await dialog.getByText("Skip makes it a dead letter, and the 1 event behind it goes on.").waitFor();
    await dialog.getByRole("button", { name: /^skip / }).click();
    await toast(page, "second goes on; 1 dead letter");
    await dialog.waitFor({ state: "detached" });
    await row("third").getByRole("button", { name: "decide about third" }).click();
    const again = async () => (await parked()).join() === "first,second,third";
    await until(again, "the event behind it has parked second anew, and nothing is dropped yet");
    await dialog.getByRole("button", { name: "drop 3 events with billing" }).click();
    await toast(page, "third: 3 dead letters");
    await row("third").waitFor({ state: "detached" });
    assert.deepEqual(await parked(), ["first", "second"]);
  });

  test("a parked key is resumed", async () => {
    targets.mended = true;
    for (const key of ["first", "second"]) {
      await row(key).getByRole("button", { name: `decide about ${key}` }).click();
      await page.getByRole("dialog").getByRole("button", { name: /^resume / }).click();
      await toast(page, `${key} goes on: its event is attempted again`);
      await row(key).waitFor({ state: "detached" });
    }
    await page.getByText("No key waits for a decision.").waitFor();
    assert.deepEqual(await parked(), []);
    assert.match(await page.locator("#events").innerText(), /a parked key was released/);
  });

  test("a dead letter is looked at: masked, and as text alone", async () => {
    await page.getByLabel("handler", { exact: true }).selectOption("mails");
    const letters = page.locator("table.letters tbody tr");
    await until(async () => (await letters.count()) === 3, "three letters of mails");
    await page.getByRole("button", { name: /look at dead letter/ }).first().click();
    const dialog = page.getByRole("dialog");
    const text = await dialog.locator("pre").innerText();
    assert.ok(text.includes('<img src=x onerror=\\"window.broken = 1\\">'), text);
    assert.ok(!text.includes("4111") && text.includes('"card": "***"'), text);
    assert.equal(await dialog.locator("img, script").count(), 0);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.match(await dialog.innerText(), /422 Unprocessable/);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("a dead letter is replayed, and one dropped after it was asked", async () => {
    const letters = page.locator("table.letters tbody tr");
    const numbers = async () => (await greenroom.get("/api/dead-letters?handler=mails")).letters.map(({ number }) => number);
    const [first, second] = await numbers();
    await page.getByRole("button", { name: `look at dead letter ${first}`, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await toast(page, "1 letter is handled again");
    // The newest is first.
    await letters.last().getByText("replayed 1×").waitFor();
    assert.ok((await numbers()).includes(first), "it has failed again");
    targets.mailsMended = true;
    await page.getByRole("button", { name: `look at dead letter ${first}`, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await until(async () => (await letters.count()) === 2, "it was handled, and the list knows");
    assert.ok(!(await numbers()).includes(first));
    await page.getByRole("button", { name: `look at dead letter ${second}`, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drop" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    assert.ok((await numbers()).includes(second));
    await page.getByRole("button", { name: `look at dead letter ${second}`, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drop" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drop 1 letter" }).click();
    await toast(page, "1 letter dropped");
    await until(async () => (await letters.count()) === 1, "it is gone from the list");
    assert.ok(!(await numbers()).includes(second));
  });

  test("all is done with the keyboard alone, and the focus is seen", async () => {
    const keys = await look(greenroom.url);
    await keys.keyboard.press("Tab");
    assert.equal(await keys.evaluate(() => document.activeElement.textContent), "to the pools");
    await keys.keyboard.press("?");
    const help = keys.getByRole("dialog", { name: "Shortcuts" });
    await help.getByText("find a key, an event or a name").waitFor();
    await keys.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
    await keys.keyboard.press("1");
    assert.equal(await keys.evaluate(() => document.activeElement.id), "pools");
    // The order of the pools comes first.
    await keys.keyboard.press("Tab");
    await keys.keyboard.press("Tab");
    const focused = await keys.evaluate(() => {
      const style = getComputedStyle(document.activeElement);
      return { text: document.activeElement.textContent, outline: style.outlineStyle, width: parseFloat(style.outlineWidth) };
    });
    assert.equal(focused.text, "default");
    assert.ok(focused.outline === "solid" && focused.width >= 2, JSON.stringify(focused));
    await keys.keyboard.press("Enter");
    await keys.locator("#pool-default").waitFor();
    // The next ones are its controls.
    const pressed = [];
    for (let step = 0; step < 3; step += 1) {
      await keys.keyboard.press("Tab");
      pressed.push(await keys.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent));
    }
    assert.deepEqual(pressed.slice(0, 2), ["Pause", "one worker less"]);
    await keys.keyboard.press("Shift+Tab");
    await keys.keyboard.press("Shift+Tab");
    await keys.keyboard.press("Enter");
    await until(async () => (await greenroom.get("/api/pools/default")).state === "paused", "Enter has paused it");
    await until(async () => keys.evaluate(() => document.activeElement.textContent === "Resume"), "the focus stays");
    await keys.keyboard.press("Enter");
    await until(async () => (await greenroom.get("/api/pools/default")).state !== "paused", "Enter has let it go on");
    await assertQuiet(keys);
    await keys.context().close();
  });

  test("light and dark are readable, with names and roles", async () => {
    assert.deepEqual(await breaches(page), []);
    const dark = await look(greenroom.url, { colorScheme: "dark", reducedMotion: "reduce" });
    await dark.getByRole("button", { name: "fleet", exact: true }).click();
    await dark.locator("#pool-fleet table.longest").waitFor();
    const background = () => dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const night = await background();
    assert.deepEqual(await breaches(dark), []);
    assert.equal(await dark.locator(".bar .fill").first().evaluate((bar) => getComputedStyle(bar).transitionDuration), "0s");
    await dark.keyboard.press("t");
    assert.notEqual(await background(), night, "light was chosen");
    await dark.keyboard.press("t");
    assert.equal(await background(), night, "dark was chosen");
    await assertQuiet(dark);
    await dark.context().close();
  });

  test("a narrow screen needs no scrolling sideways", async () => {
    const narrow = await look(greenroom.url, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await narrow.getByRole("button", { name: "fleet", exact: true }).click();
    await narrow.locator("#pool-fleet table.longest").waitFor();
    const wide = await narrow.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} pixels too wide`);
    assert.deepEqual(await breaches(narrow), []);
    await narrow.context().close();
  });

  test("a policy keeps out what is not its own, and nothing is asked elsewhere", async () => {
    const other = await open(browser);
    const asked = new Set();
    other.on("request", (request) => asked.add(new URL(request.url()).origin));
    await other.goto(greenroom.url);
    await live(other);
    assert.deepEqual([...asked], [greenroom.url]);
    await assertQuiet(other);
    await other.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.broken = 1";
      document.body.append(script);
      const image = document.createElement("img");
      image.src = "http://127.0.0.1:9/x.png";
      document.body.append(image);
      document.body.insertAdjacentHTML("beforeend", '<b style="color: red" onclick="window.broken = 1">x</b>');
    });
    await until(() => other.evaluate(() => window.violations.length >= 3), "the policy has spoken");
    assert.equal(await other.evaluate(() => window.broken), undefined);
    await other.context().close();
  });

  test("a hidden tab asks for nothing", async () => {
    const hidden = await look(greenroom.url);
    const ended = hidden.waitForEvent("requestfailed", (request) => request.url().endsWith("/api/live"));
    const hide = (state) =>
      hidden.evaluate((state) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => state });
        document.dispatchEvent(new Event("visibilitychange"));
      }, state);
    await hide(true);
    await ended;
    const asked = [];
    hidden.on("request", (request) => asked.push(request.url()));
    await hidden.waitForTimeout(2_000);
    assert.deepEqual(asked, []);
    await hide(false);
    await live(hidden);
    assert.ok(asked.some((url) => url.endsWith("/api/live")), `${asked}`);
    await hidden.context().close();
  });

  test("a page that is left open does not grow", async () => {
    const { hello, sample } = await recorded();
    let number = 0;
    const body = (count) => {
      const lines = [`${hello}\n\n`];
      for (let step = 0; step < count; step += 1) {
        number += 1;
        sample.at_ms += 1_000;
        sample.up_ms += 1_000;
        sample.run.settled += 700 + (number % 50);
        const happened = Array.from({ length: 60 }, (_, place) => ({ number: number * 60 + place, at_ms: sample.at_ms, pool: "erp", kind: "worker_restarted", text: `worker ${place} was restarted, for the ${number}th time`, times: 1 }));
        lines.push(`data: ${JSON.stringify({ ...sample, events: happened })}\n\n`);
      }
      return lines.join("");
    };
    const old = await open(browser);
    let [rounds, pause, goOn] = [0, 2, () => {}];
    await old.route("**/api/live", async (route) => {
      rounds += 1;
      // Asked again, the page is done with all that it was told: now it can be measured.
      if (rounds === pause) await new Promise((done) => (goOn = done));
      await route.fulfill({ status: 200, headers: { "content-type": "text/event-stream" }, body: body(400) }).catch(() => {});
    });
    await old.goto(greenroom.url);
    const measure = async () => {
      await until(() => rounds === pause, `round ${pause}`, 30_000);
      const session = await old.context().newCDPSession(old);
      for (let times = 0; times < 3; times += 1) await session.send("HeapProfiler.collectGarbage");
      const { usedSize } = await session.send("Runtime.getHeapUsage");
      return { heap: usedSize, nodes: await old.locator("*").count() };
    };
    const early = await measure();
    pause += 5;
    goOn();
    const late = await measure();
    console.log(`  ${(early.heap / 1e6).toFixed(1)} MB and ${early.nodes} nodes, 2,000 samples later ${(late.heap / 1e6).toFixed(1)} MB and ${late.nodes} nodes`);
    // One sample is some 10 kB: 2,000 that were kept would be 20 MB.
    assert.ok(late.heap < early.heap + 3e6, "memory");
    assert.ok(late.nodes < early.nodes * 1.1 + 50, "nodes");
    await old.context().close();
  });

  test("partitions, outages and outputs are told with what is wrong, the worst first", async () => {
    const { sample } = await recorded();
    const [input] = sample.run.inputs;
    const part = input.partitions[0];
    input.partitions = Array.from({ length: 12 }, (_, partition) => ({ ...part, partition, state: partition === 7 ? "paused" : "running", next: 1_000, oldest_open: 900 + partition, lag: 40 }));
    sample.handlers[0] = { ...sample.handlers[0], state: "outage", outage: { lasted_ms: 125_000, last_error: "503 from the shop" } };
    sample.outputs[0] = { ...sample.outputs[0], state: "paused", trouble: { lasted_ms: 61_000, last_error: "401 from the archive" } };
    sample.pools[1] = { ...sample.pools[1], state: "without workers", live: 0 };
    sample.health = health([
      { ...finding("critical", "outputs.archive"), what: "The output `archive` is paused", figures: "401 from the archive", lasted_ms: 125_000 },
      { ...finding("warning", "pools.billing"), what: "Workers of the pool `billing` wait for the output `archive`", follows: "outputs.archive" },
      { ...finding("critical", "dead_letters"), what: "Dead letters are not stored", figures: "the disk is full" },
      { ...finding("hint", "pools.roomy"), what: "More events can wait than ever do" },
    ]);
    const other = await told([sample]);
    assert.equal(await other.locator("h1").innerText(), "The output archive is paused; 1 more");
    const found = await other.locator(".problems > li").allInnerTexts();
    assert.equal(found.length, 2, "a hint is no problem");
    assert.match(found[0], /archive is paused: 401 from the archive\s*2 min[\s\S]*billing wait for the output archive/);
    assert.match(found[1], /the disk is full/);
    assert.equal(await other.locator(".effects li").count(), 1);
    await other.getByText("lag 480").waitFor();
    await other.getByText("1 of 12 partitions paused").waitFor();
    await other.getByRole("button", { name: input.name, exact: true }).click();
    const rows = other.locator("#inputs tbody tr");
    assert.equal(await rows.count(), 12);
    assert.match(await rows.nth(7).innerText(), /7\s+paused\s+40\s+907\s+1,000/);
    await other.getByRole("button", { name: `resume the output ${sample.outputs[0].name}` }).waitFor();
    await other.context().close();
  });

  test("the map shows a paused output in its colour, the bottleneck, and the way to its row", async () => {
    const { sample } = await recorded();
    const { name } = sample.outputs[0];
    const trouble = { lasted_ms: 61_000, last_error: "401 from the archive" };
    sample.outputs[0] = { ...sample.outputs[0], state: "paused", trouble, waiting: [{ pool: "erp", workers: 3 }] };
    sample.run.inputs = Array.from({ length: 20 }, (_, place) => ({ ...sample.run.inputs[0], name: `in-${place}`, taken: place }));
    sample.health = health([
      finding("critical", `outputs.${name}`),
      { ...finding("warning", "pools.erp"), follows: `outputs.${name}` },
      finding("warning", "inputs.in-0"),
      finding("hint", "pools.default"),
    ]);
    const other = await told([sample]);
    const link = (about) => other.locator(`#map a[href="#${about}"]`);
    const node = (about) => link(about).locator("xpath=ancestor::li[1]");
    const looks = async (about) => (await node(about).getAttribute("class")).trim();
    assert.equal(await looks(`outputs.${name}`), "node bad");
    assert.equal(await looks("pools.erp"), "node care");
    assert.equal(await looks("pools.default"), "node", "a hint is no trouble");
    assert.match(await node(`outputs.${name}`).innerText(), /bottleneck[\s\S]*paused · 3 workers of erp wait/);
    assert.equal(await other.locator("#map .badge").count(), 1);
    const colour = (of) => of.evaluate((one) => getComputedStyle(one).color);
    assert.equal(await colour(link(`outputs.${name}`)), await colour(other.locator(".status .mark.bad").first()));
    // The busiest are shown, and those in trouble.
    const inputs = other.getByRole("list", { name: "Inputs" });
    assert.equal(await inputs.locator("a").count(), 12);
    assert.deepEqual([await inputs.getByRole("link", { name: "in-0", exact: true }).count(), await inputs.getByRole("link", { name: "in-1", exact: true }).count()], [1, 0]);
    await inputs.getByText("and 8 more").waitFor();
    await link(`outputs.${name}`).click();
    assert.equal(await other.evaluate(() => document.activeElement.id), `outputs.${name}`);
    await other.setViewportSize({ width: 360, height: 740 });
    await until(() => other.evaluate(() => document.documentElement.scrollWidth <= 360), "it needs no scrolling sideways");
    await other.context().close();
  });

  test("what is shown stands in the address, and outlives a reload", async () => {
    const other = await look(greenroom.url);
    const range = other.getByRole("button", { name: "15 min" });
    await range.click();
    await other.getByLabel("order of the pools").selectOption("queue");
    await other.getByLabel("handler", { exact: true }).selectOption("mails");
    await other.keyboard.press("/");
    await other.getByLabel("find a key, an event or a name").fill("forever");
    await other.keyboard.press("Enter");
    const dialog = other.getByRole("dialog", { name: "Why does forever wait?" });
    await dialog.waitFor();
    assert.equal(new URL(other.url()).hash, "#range=900&sort=queue&why=forever&handler=mails");
    await other.reload();
    await dialog.waitFor();
    await other.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.equal(await range.getAttribute("aria-pressed"), "true");
    assert.equal(await other.getByLabel("order of the pools").inputValue(), "queue");
    assert.equal(await other.getByLabel("handler", { exact: true }).inputValue(), "mails");
    await other.goBack();
    await dialog.waitFor();
    await other.goForward();
    await dialog.waitFor({ state: "detached" });
    await assertQuiet(other);
    await other.context().close();
  });

  test("the title of the tab tells the verdict and the instance, and its sign the colour", async () => {
    const { hello } = await recorded();
    const { instance } = JSON.parse(hello.slice(hello.indexOf("data: ") + "data: ".length));
    const other = await look(greenroom.url);
    const told = async () => {
      const verdict = await other.locator("h1").innerText();
      const cut = verdict.length > 60 ? `${verdict.slice(0, 59)}…` : verdict;
      return (await other.title()) === `● ${cut} · ${instance} – Greenroom`;
    };
    await until(told, "the title is the verdict");
    const colours = { green: "#1c7a46", yellow: "#b86e00", red: "#b3261e" };
    const inItsColour = async () => {
      const { health } = await greenroom.get("/healthz");
      return (await other.locator("link[rel=icon]").getAttribute("href")).includes(encodeURIComponent(colours[health]));
    };
    await until(inItsColour, "the sign has the colour of its health");
    await assertQuiet(other);
    await other.context().close();
  });

  test("shortcuts are switched off for those who press keys by accident", async () => {
    const other = await look(greenroom.url);
    await other.getByRole("switch", { name: "keyboard shortcuts" }).click();
    await other.keyboard.press("?");
    await other.keyboard.press("/");
    assert.notEqual(await other.evaluate(() => document.activeElement.id), "find");
    assert.equal(await other.getByRole("dialog").count(), 0);
    await other.reload();
    assert.equal(await other.getByRole("switch", { name: "keyboard shortcuts" }).getAttribute("aria-checked"), "false");
    await other.context().close();
  });

  test("an output that a reload removed says so while it is not done", async () => {
    const { sample } = await recorded();
    const trouble = { lasted_ms: 61_000, last_error: "connection refused" };
    sample.outputs.push({ ...sample.outputs[0], name: "archive", state: "failing", trouble, removed: true });
    const other = await told([sample]);
    const row = (name) => other.locator("#targets li", { has: other.getByText(name, { exact: true }) });
    const output = (name) => row(name).locator(".badge").allInnerTexts();
    assert.deepEqual(await output("archive"), ["failing", "removed"]);
    assert.deepEqual(await output(sample.outputs[0].name), ["up"]);
    await other.context().close();
  });

  test("where nothing is, it says so", async () => {
    const { sample } = await recorded();
    sample.health = health([]);
    Object.assign(sample.run, { parked_keys: 0, parked_events: 0, dead_lettered: 0 });
    Object.assign(sample, { parked: [], hottest: [], events: [], outputs: [], pools: sample.pools.map((pool) => ({ ...pool, state: "running", slots: (pool.slots ?? []).map(() => -1) })) });
    const other = await told([sample]);
    assert.equal(await other.locator("h1").innerText(), "All is well");
    for (const text of ["No key waits for a decision.", "No pool keeps order per key", "Nothing has happened", "There are none: what handlers produce goes nowhere."]) {
      await other.getByText(text).first().waitFor();
    }
    await other.context().close();
  });

  test("two tabs are live beside each other", async () => {
    const second = await look(greenroom.url);
    const count = (of) => of.locator(".figure", { hasText: "Finished in all" }).locator(".value").innerText();
    const [one, other] = [await count(page), await count(second)];
    await until(async () => (await count(page)) !== one && (await count(second)) !== other, "both go on");
    await second.context().close();
  });

  test("a page that finds no place at the stream says why, and goes on once there is one", async () => {
    const held = await Promise.all(Array.from({ length: 16 }, () => fetch(`${greenroom.url}/api/live`)));
    const other = await open(browser);
    await other.goto(greenroom.url);
    await other.getByRole("alert").getByText("16 pages are listening, which is the limit").waitFor();
    await other.getByText("refused", { exact: true }).waitFor();
    await Promise.all(held.map(({ body }) => body.cancel()));
    await live(other);
    await other.context().close();
  });

  test("what is hidden in a text is marked", async () => {
    const { sample } = await recorded();
    sample.health = health([{ ...finding("critical", "dead_letters"), what: "a\u202eb\u200d of `c\ufeff`" }]);
    sample.run.inputs = [{ ...sample.run.inputs[0], source: "in\u200bput" }];
    const other = await told([sample]);
    assert.equal(await other.locator("h1").innerText(), "a\\u{202e}b\\u{200d} of c\\u{feff}");
    const tips = await other.locator("[title]").evaluateAll((nodes) => nodes.map((node) => node.title));
    assert.ok(tips.includes("in\\u{200b}put"), tips.join(" | "));
    await other.context().close();
  });

  test("a greenroom that is gone is told with its time, and comes back by itself", async () => {
    await greenroom.kill();
    const gone = page.getByRole("alert");
    await gone.getByText(/greenroom has not answered since \d\d:\d\d:\d\d/).waitFor();
    assert.ok(await pool("default").getByRole("button", { name: "Pause" }).isDisabled());
    assert.match(await page.title(), /^○ no answer · /);
    await page.waitForTimeout(1_200);
    await greenroom.start();
    await live(page);
    await gone.waitFor({ state: "detached" });
    await until(async () => /up for \d+(\.\d)? m?s/.test(await page.locator(".figures").innerText()), "it is the new one");
    await assertQuiet(page);
  });
});

describe("a greenroom with tokens", () => {
  const targets = new Targets();
  let greenroom;

  before(async () => {
    await targets.start();
    greenroom = new Greenroom(await freePort());
    greenroom.configure(config({ port: greenroom.port, targets, tokens: ", token: sesame, read_token: spyglass" }));
    await greenroom.start();
  });
  after(async () => {
    await greenroom.stop();
    targets.stop();
  });

  test("the page asks for a token, and keeps it in its tab alone", async () => {
    const page = await open(browser);
    await page.goto(greenroom.url);
    const field = page.getByLabel("Token");
    await field.fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("This token is wrong.").waitFor();
    assert.deepEqual(await breaches(page), []);
    await field.fill("sesame");
    await page.keyboard.press("Enter");
    await live(page);
    await page.locator("h1").waitFor();
    const kept = await page.evaluate(() => [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie, location.href]);
    assert.ok(kept[0].includes("sesame") && !kept.slice(1).join().includes("sesame"), kept.join("\n"));
    await page.getByRole("button", { name: "default", exact: true }).click();
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    await toast(page, "default is paused");
    assert.match(greenroom.log, /admin action: done .*who="?admin token"?.*POST \/api\/pools\/default\/pause/);
    assert.ok(!greenroom.log.includes("sesame"));
    await page.getByRole("button", { name: "Forget the token" }).click();
    await field.waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await assertQuiet(page);
    await page.context().close();
  });

  test("with the read token all is seen and no button works", async () => {
    const page = await open(browser);
    await page.goto(greenroom.url);
    await page.getByLabel("Token").fill("spyglass");
    await page.keyboard.press("Enter");
    await live(page);
    await page.getByText("read only").waitFor();
    await page.getByRole("button", { name: "default", exact: true }).click();
    const acts = page.locator("#pool-default").getByRole("button", { name: /Pause|Resume/ });
    assert.ok(await acts.first().isDisabled());
    const status = await page.evaluate(async () => (await fetch("/api/pools/default/resume", { method: "POST", headers: { authorization: "Bearer spyglass" } })).status);
    assert.equal(status, 403);
    await page.context().close();
  });
});

describe("a pool whose events have shares", () => {
  let greenroom;
  let page;

  before(async () => {
    greenroom = new Greenroom(await freePort());
    greenroom.configure(`
inputs:
  all: { file: { path: in.ndjson, follow: true } }
  flood: { generator: { rate: 200/s, keys: 1, types: [u] }, run_ahead: 10 }
pools:
  default: { workers: 4, order_by: subject, share_by: /tenant, shares: { default: { in_hand: 2 }, bolt: { weight: 3 } } }
  small: { workers: 1, queue: 20, share_by: subject }
handlers:
  slow: { on: t, simulate: { latency: 60s, failures: 0 } }
  stuck: { on: u, pool: small, simulate: { latency: 1h, failures: 0 } }
outputs: { done: { file: { path: done.ndjson } } }
admin: { listen: '127.0.0.1:${greenroom.port}' }
`);
    await greenroom.start();
    greenroom.write("t", Array.from({ length: 30 }, (_, n) => `a${n}`), { tenant: "acme/eu" });
    greenroom.write("t", ["b0"], { tenant: "bolt" });
    await until(async () => (await greenroom.get("/api/pools/default/shares")).count >= 2, "two shares are there");
    page = await look(greenroom.url);
  });
  after(async () => {
    await page.context().close();
    await greenroom.stop();
  });

  test("q11 a table says what each share has and waits for, and pauses one", async () => {
    await page.getByRole("button", { name: "default", exact: true }).click();
    const table = page.getByRole("table", { name: "shares of default" });
    const row = (name) => table.locator("tr", { hasText: name });
    await row("acme/eu").waitFor();
    assert.match(await row("acme/eu").innerText(), /2 \/ 2\s+28\s.*as many in hand as may be/s);
    assert.match(await row("bolt").innerText(), /1 \/ 2\s+0\s.*3\s/s);
    await page.getByRole("button", { name: "pause the share acme/eu" }).click();
    await toast(page, "acme/eu is paused");
    await row("acme/eu").getByText("paused").waitFor();
    await page.getByLabel("order of the shares of default").selectOption("held");
    await until(async () => /acme\/eu/.test(await table.locator("tbody tr").first().innerText()), "the paused one is first");
    assert.deepEqual(await breaches(page), []);
    await page.getByRole("button", { name: "resume the share acme/eu" }).click();
    await toast(page, "acme/eu goes on");
    await assertQuiet(page);
  });

  test("q08 an input that stands still because of a share names it, and its part of the run-ahead", async () => {
    const why = page.locator("[id='inputs.flood'] .why", { hasText: "because of a share" });
    await why.waitFor();
    assert.match(await why.innerText(), /: 1\d events of the share \S+ wait for room in the pool small, of a run-ahead of 10\.$/);
    assert.equal(await page.locator("[id='inputs.all'] .why").count(), 0);
    await assertQuiet(page);
  });
});
