// Makes pictures of the page under load, and of the playground:
// node test/look.mjs DIRECTORY [dashboard|playground]
import { mkdirSync } from "node:fs";
import { Greenroom, Playground, Targets, config, freePort, launch, open, until } from "./stage.mjs";

const out = process.argv[2] ?? "screenshots";
const wanted = process.argv[3] ?? "both";
mkdirSync(out, { recursive: true });

async function playground() {
  const playground = new Playground();
  await playground.start();
  const browser = await launch();
  try {
    const page = await open(browser, { viewport: { width: 1280, height: 1000 } });
    await page.goto(playground.url);
    // Until events wait behind the slow one.
    const waits = async () => (await page.locator("#side-hashing .verdict").innerText()).match(/^(\d+) events.+free/)?.[1] > 20;
    await page.waitForTimeout(15_000);
    for (const colours of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: colours });
      await until(waits, "events wait though workers are free", 60_000);
      await page.screenshot({ path: `${out}/playground-${colours}.png`, fullPage: true });
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await page.screenshot({ path: `${out}/playground-narrow.png`, fullPage: true });
    console.log(page.faults, await page.evaluate(() => window.violations));
  } finally {
    await browser.close();
    await playground.stop();
  }
}

async function dashboard() {
  const targets = new Targets();
  await targets.start();
  const greenroom = new Greenroom(await freePort());
  greenroom.configure(config({ port: greenroom.port, targets, fleet: 1024 }));
  await greenroom.start();
  const browser = await launch();
  try {
    const subjects = (from, count) => Array.from({ length: count }, (_, place) => `customer-${from + place}`);
    greenroom.write("invoice.issued", [...subjects(40, 3), ...subjects(40, 2), "customer-41", "customer-41"], { amount: 120 });
    greenroom.write("mail.wanted", subjects(7, 6), { template: "welcome", card: "4111 1111 1111 1111" });
    greenroom.write("never.answered", ["customer-99"]);
    const page = await open(browser);
    await page.goto(greenroom.url);
    await page.getByText("live", { exact: true }).waitFor();
    await page.waitForTimeout(Number(process.env.WAIT ?? 30) * 1_000);
    const shot = async (name, options = {}) => {
      await page.screenshot({ path: `${out}/${name}.png`, ...options });
    };
    await page.getByRole("button", { name: "fleet", exact: true }).click();
    await page.waitForTimeout(2_500);
    await page.setViewportSize({ width: 1280, height: 1130 });
    await page.waitForTimeout(1_500);
    await shot("light");
    await shot("light-full", { fullPage: true });
    await page.keyboard.press("t");
    await page.keyboard.press("t");
    await page.locator("h1").hover();
    await page.waitForTimeout(1_500);
    await shot("dark");
    await page.setViewportSize({ width: 1360, height: 900 });
    await page.getByRole("button", { name: /look at dead letter/ }).first().click();
    await page.waitForTimeout(400);
    await shot("dark-letter");
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    await page.getByRole("button", { name: /decide about/ }).first().click();
    await page.waitForTimeout(300);
    await shot("decide");
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(1_500);
    for (const [place, id] of ["status", "map", "pools", "keys", "letters"].entries()) {
      await page.evaluate((id) => document.getElementById(id).scrollIntoView(), id);
      await page.waitForTimeout(300);
      await shot(`narrow-${place}`);
    }
    await page.setViewportSize({ width: 1360, height: 900 });
    await greenroom.kill();
    await page.getByText("greenroom has not answered since").waitFor();
    await page.waitForTimeout(2_500);
    await shot("gone");
    console.log(page.faults, await page.evaluate(() => window.violations));
  } finally {
    await browser.close();
    await greenroom.stop();
    targets.stop();
  }
}

if (wanted !== "playground") await dashboard();
if (wanted !== "dashboard") await playground();
