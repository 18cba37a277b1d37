// Makes pictures of the page under load: node test/look.mjs DIRECTORY
import { mkdirSync } from "node:fs";
import { Greenroom, Targets, config, freePort, launch, open, until } from "./stage.mjs";

const out = process.argv[2] ?? "screenshots";
mkdirSync(out, { recursive: true });
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
