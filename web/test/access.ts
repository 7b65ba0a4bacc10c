// SPDX-License-Identifier: Apache-2.0
// Who reads the page: in the dark, on a phone, with the keyboard, with a screen reader.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { choose, drawn, finish, folder, open, press } from "./driver.ts";

test("dark as the system is, and by a key", async () => {
  const page = await open("vit.html", { dark: true });
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await back();
  await choose(page, "source", "self.attention");
  await page.screenshot({ path: join(folder, "dark.png") });
  await press(page, "t");
  assert.notEqual(await back(), dark);
  await finish(page, "light");
});

test("a phone shows one pane at a time and never scrolls sideways", async () => {
  const page = await open("vit.html", { width: 390, height: 780 });
  const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  assert.equal(await isWide(), false);
  await page.locator('.switch [data-pane="source"]').click();
  await drawn(page);
  await choose(page, "source", "self.attention");
  await page.screenshot({ path: join(folder, "phone-source.png") });
  await page.locator('.switch [data-pane="graph"]').click();
  await drawn(page);
  await page.waitForSelector(".graph .chosen");
  for (const tab of ["totals", "runtimes", "verification", "explore"]) {
    await page.locator(`[data-tab="${tab}"]`).click();
    await drawn(page);
    assert.equal(await isWide(), false, tab);
  }
  await finish(page, "phone");
});

// The page below shows few of these pairs: which line is under the cursor depends on what was chosen.
test("every colour of text can be read on every colour of a line", () => {
  const css = readFileSync(new URL("../src/theme.css", import.meta.url), "utf8");
  const colors = new Map<string, string[]>();
  for (const [, name = "", ...both] of css.matchAll(
    /--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g,
  ))
    colors.set(name, both);
  const luminance = (color: string) => {
    const part = (at: number) => {
      const s = parseInt(color.slice(at, at + 2), 16) / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  };
  const poor: string[] = [];
  for (const text of ["ink", "dim", "accent", "keyword", "string", "number", "type", "variable"])
    for (const back of ["back", "paper", "faint", "mark", "cursor"])
      for (const theme of [0, 1]) {
        const [a, b] = [text, back].map((name) => luminance(colors.get(name)![theme]!)) as [
          number,
          number,
        ];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5)
          poor.push(`${text} on ${back}, ${["light", "dark"][theme]}: ${ratio.toFixed(2)}`);
      }
  assert.deepEqual(poor, []);
});

test("texts can be read: contrast of at least 4.5", async () => {
  for (const dark of [false, true]) {
    const page = await open("vit.html", { dark });
    await choose(page, "source", "self.attention");
    assert.deepEqual(await page.evaluate(poorContrast), []);
    for (const tab of ["totals", "runtimes", "verification"]) {
      await page.locator(`[data-tab="${tab}"]`).click();
      await drawn(page);
      assert.deepEqual(await page.evaluate(poorContrast), [], tab);
    }
    await finish(page);
  }
});

// Runs in the page: texts of HTML that stand out too little from what is behind them.
function poorContrast(): string[] {
  const parse = (color: string) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r = 0, g = 0, b = 0]: number[]) => {
    const part = (c: number) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element: Element | null): number[] => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if ((color[3] ?? 1) > 0.9 && color.length > 0) return color;
    }
    return [255, 255, 255];
  };
  const poor = new Set<string>();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const isText = element && !element.closest("svg, script, [hidden]") && node.nodeValue?.trim();
    if (!element || !isText || element.getClientRects().length === 0) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parse(style.color)), luminance(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`${ratio.toFixed(2)}: ${element.className} ${node.nodeValue}`);
  }
  return [...poor].slice(0, 5);
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// What axe-core complains about: names, roles, landmarks, contrast.
async function complaints(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    interface Found {
      violations: { id: string; nodes: { html: string }[] }[];
    }
    type Run = (context: { exclude: string[] }) => Promise<Found>;
    const { run } = (window as unknown as { axe: { run: Run } }).axe;
    const alike = [
      ".line:nth-child(n + 9):not(.chosen)",
      "tbody tr:nth-child(n + 9)",
      ".graph svg",
    ];
    const { violations } = await run({ exclude: alike });
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`);
  });
}

test("axe-core finds nothing in any tab, light and dark, wide and narrow", async () => {
  for (const look of [{}, { dark: true }, { width: 390, height: 780 }]) {
    const page = await open("vit.html", look);
    const check = async (what: string) => {
      await drawn(page);
      assert.deepEqual(await complaints(page), [], `${what} ${JSON.stringify(look)}`);
    };
    await check("the graph");
    if (!look.width) {
      await choose(page, "source", "self.attention");
      await check("a chosen line");
    }
    await press(page, "/");
    await page.keyboard.type("mlp");
    await check("the search");
    await press(page, "Escape");
    for (const tab of ["totals", "runtimes", "verification", "profile"]) {
      await page.locator(`[data-tab="${tab}"]`).click();
      await check(tab);
    }
    await finish(page);
  }
});

test("the tab key reaches every control, and the focus can be seen", async () => {
  const page = await open("vit.html");
  await page.locator(".box", { hasText: "Reshape" }).first().click();
  const reached = new Set<string>();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    const [name, outline] = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement;
      if (element === document.body) return ["the end", ""] as const;
      const label = element.getAttribute("aria-label") ?? element.textContent ?? "";
      return [label, getComputedStyle(element).outlineStyle] as const;
    });
    if (name === "the end") continue; // the first control is next
    assert.notEqual(outline, "none", `the focus on ${name} cannot be seen`);
    reached.add(name);
  }
  for (const wanted of [
    "Explore",
    "search nodes, layers and lines",
    "light or dark",
    "Source",
    "width of Source",
    "jaxpr",
    "Raised",
    "next match",
    "Graph: arrows walk the nodes, Enter opens a layer",
    "zoom in (+)",
    "close",
  ])
    assert.ok(reached.has(wanted), `the tab key does not reach ${wanted}: ${[...reached].join()}`);
  await finish(page);
});

test("arrows walk the tabs, move borders, and name the line they are on", async () => {
  const page = await open("vit.html");
  const tab = page.locator('[role="tab"][aria-selected="true"]');
  await tab.focus();
  await press(page, "ArrowRight");
  assert.equal(await tab.innerText(), "Totals");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "tab-totals");
  assert.ok(await page.locator("#view-totals").isVisible());
  await press(page, "ArrowLeft");
  await press(page, "ArrowLeft");
  assert.equal(await tab.innerText(), "Profile");
  await press(page, "Home");

  const pane = page.locator(".pane.source");
  const before = (await pane.boundingBox())?.width ?? 0;
  await page.locator('[aria-label="width of Source"]').focus();
  await press(page, "ArrowRight");
  assert.ok(((await pane.boundingBox())?.width ?? 0) > before);

  await press(page, "1");
  await press(page, "ArrowDown");
  const active = await page.locator(".pane.source .lines").getAttribute("aria-activedescendant");
  assert.match((await page.locator(`[id="${active}"]`).getAttribute("class")) ?? "", /cursor/);
  await press(page, "/");
  await page.keyboard.type("mlp");
  await press(page, "ArrowDown");
  assert.equal(await page.locator(".search input").getAttribute("aria-activedescendant"), "hit-1");
  await press(page, "Escape");

  await page.locator('[data-tab="totals"]').click();
  const head = page.locator("th", { hasText: "parameters" }).first();
  await head.locator("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  await head.locator("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  assert.equal(await page.locator("table").first().locator("th[aria-sort]").count(), 1);
  await finish(page);
});
