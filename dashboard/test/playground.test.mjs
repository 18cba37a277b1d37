// The playground in a real browser, beside a greenroom that really runs it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Playground, assertQuiet, breaches, launch, open, until } from "./stage.mjs";

describe("the playground", () => {
  const playground = new Playground();
  let browser;
  let page;

  before(async () => {
    browser = await launch();
    await playground.start();
    page = await open(browser);
    await page.goto(playground.url);
    await page.locator("h1").waitFor();
  });
  after(async () => {
    await browser.close();
    await playground.stop();
  });

  const side = (name) => page.locator(`#side-${name}`);
  const scene = (name) => page.getByRole("button", { name, exact: true });

  test("it shows both pools at work, and the slow key in a worker's hand", async () => {
    for (const name of ["lanes", "hashing"]) {
      assert.equal(await side(name).locator(".box").count(), 8);
      await side(name).locator(".box.slow", { hasText: "order-0042" }).first().waitFor();
      await side(name).locator(".box.busy").first().waitFor();
      await until(async () => /^\d+(\.\d)? m?s$/.test(await side(name).locator(".numbers .value").nth(1).innerText()), `a p99 of ${name}`);
    }
    assert.match(await page.locator("h1").innerText(), /^p99 of the cold keys: .+ with lanes, .+ with hashing/);
    await assertQuiet(page);
  });

  test("events of other keys wait behind the slow one with hashing, while workers are free", async () => {
    await side("hashing").getByText(/of other keys waits?, and \d+ workers? (is|are) free/).waitFor({ timeout: 20_000 });
    await side("hashing").locator(".box.slow .behind").first().waitFor({ timeout: 20_000 });
  });

  test("a slider changes both pools, by mouse and by keyboard", async () => {
    const workers = page.getByRole("slider", { name: "Workers" });
    await workers.fill("3");
    for (const name of ["lanes", "hashing"]) await until(async () => (await side(name).locator(".box").count()) === 3, `three workers of ${name}`);
    await workers.press("ArrowRight");
    await until(async () => (await playground.setting("workers")) === 4, "four workers");
    assert.equal(await page.locator("output[for=set-workers]").innerText(), "4");
    const shares = page.getByRole("switch", { name: "Shares" });
    await shares.press("Space");
    await until(async () => (await playground.setting("shares")) === 0, "shares are off");
    assert.equal(await shares.isChecked(), false);
    await assertQuiet(page);
  });

  test("a position sets all sliders", async () => {
    await scene("No trouble").click();
    await until(async () => (await playground.setting("slow_percent")) === 0 && (await playground.setting("workers")) === 8, "the load is calm");
    assert.equal(await scene("No trouble").getAttribute("aria-pressed"), "true");
    await scene("One slow key").click();
    await until(async () => (await playground.setting("slow_percent")) === 0.5, "the slow key is back");
  });

  test("what is out of bounds is refused in words, and changes nothing", async () => {
    const answer = await fetch(`${playground.url}/api/playground/settings?workers=0`, { method: "POST" });
    const { error } = await answer.json();
    assert.equal(answer.status, 400);
    assert.equal(error.what, '`workers` is a whole number from 1 to 32, not "0"');
    assert.equal(await playground.setting("workers"), 8);
    const elsewhere = await fetch(`${playground.url}/api/playground/settings?workers=2`, { method: "POST", headers: { origin: "http://evil.example" } });
    assert.equal(elsewhere.status, 403);
  });

  test("it breaks no rule of accessibility, in light and dark, wide and narrow", async () => {
    for (const colours of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: colours });
      for (const width of [1360, 390]) {
        await page.setViewportSize({ width, height: 900 });
        assert.deepEqual(await breaches(page), [], `${colours}, ${width}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `nothing is cut off at ${width}`);
      }
    }
    await page.setViewportSize({ width: 1360, height: 900 });
  });

  test("it says when the playground has ended", async () => {
    assert.equal(await playground.stop(), 0);
    await page.getByRole("alert").getByText("greenroom does not answer").waitFor();
    assert.deepEqual(page.faults, []);
  });
});
