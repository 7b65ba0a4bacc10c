// SPDX-License-Identifier: Apache-2.0
// What every test of the page does: opens one in Chromium, chooses, presses keys. PAGES is the folder
// with the pages that tests/explorer writes; screenshots go there, too.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";

export const folder = process.env.PAGES ?? "build/explorer";
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
let browser: Browser;

before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(() => browser?.close());

export const REST = 250; // by then the graph has drawn what it puts off while it moves

interface Look {
  width?: number;
  height?: number;
  dark?: boolean;
}

export const blank = (): Promise<Page> =>
  browser.newPage({ viewport: { width: 1600, height: 950 } });

// Opens a page, and fails for whatever the browser has to say about it.
export async function open(name: string, look: Look = {}): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1600, height: look.height ?? 950 },
    colorScheme: look.dark ? "dark" : "light",
    offline: true,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() !== "log") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|data|about):/.test(request.url())) complaints.push(`asks for ${request.url()}`);
  });
  page.on("close", () => assert.deepEqual(complaints, []));
  await page.goto(`file://${join(folder, name)}`);
  await page.waitForSelector(".graph .box, .graph .group");
  return page;
}

export async function finish(page: Page, screenshot?: string): Promise<void> {
  await page.waitForTimeout(150);
  if (screenshot) await page.screenshot({ path: join(folder, `${screenshot}.png`) });
  await page.close();
}

export const line = (page: Page, pane: string, text: string | RegExp) =>
  page.locator(`.pane.${pane} .line.linked`).filter({ hasText: text }).first();

export async function choose(page: Page, pane: string, text: string | RegExp): Promise<void> {
  await line(page, pane, text).click({ position: { x: 70, y: 9 } });
  await drawn(page);
}

export async function press(page: Page, key: string): Promise<void> {
  await page.keyboard.press(key);
  await drawn(page);
}

// The page draws what a choice changes in the next frame; in the one after it everything is there.
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}
