// SPDX-License-Identifier: Apache-2.0
// Drives the page in Chromium. PAGES is the folder with the pages that tests/explorer writes;
// screenshots go there, too.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";

const folder = process.env.PAGES ?? "build/explorer";
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
let browser: Browser;

before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(() => browser?.close());

const REST = 250; // by then the graph has drawn what it puts off while it moves

interface Look {
  width?: number;
  height?: number;
  dark?: boolean;
}

// Opens a page, and fails for whatever the browser has to say about it.
async function open(name: string, look: Look = {}): Promise<Page> {
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

async function finish(page: Page, screenshot?: string): Promise<void> {
  await page.waitForTimeout(150);
  if (screenshot) await page.screenshot({ path: join(folder, `${screenshot}.png`) });
  await page.close();
}

const line = (page: Page, pane: string, text: string | RegExp) =>
  page.locator(`.pane.${pane} .line.linked`).filter({ hasText: text }).first();

async function choose(page: Page, pane: string, text: string | RegExp): Promise<void> {
  await line(page, pane, text).click({ position: { x: 70, y: 9 } });
  await drawn(page);
}

async function press(page: Page, key: string): Promise<void> {
  await page.keyboard.press(key);
  await drawn(page);
}

// The page draws what a choice changes in the next frame; in the one after it everything is there.
async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

test("a source line shows its equations, its raised form and its nodes", async () => {
  const page = await open("attention.html");
  await choose(page, "source", "jax.nn.softmax(scores");
  await page.waitForSelector(".box.chosen");
  assert.match(await page.locator(".pane.program .line.chosen").first().innerText(), /=/);
  assert.match(await page.locator(".pane.raised .line.chosen").first().innerText(), /attention/);
  const chosen = await page.locator(".box.chosen .op").allTextContents();
  assert.ok(chosen.includes("Attention"));
  await finish(page, "attention");
});

test("a node shows its source line and what is known of it", async () => {
  const page = await open("attention.html");
  await page.locator(".box", { hasText: "Attention" }).click();
  await drawn(page);
  const details = page.locator(".details");
  await details.waitFor();
  assert.match(await details.innerText(), /rule\s+attention/);
  assert.match(await details.innerText(), /stands for \d+ equations/);
  const lines = await page.locator(".pane.source .line.chosen").allInnerTexts();
  assert.ok(lines.some((text) => text.includes("jax.nn.softmax(scores")));
  const attention = page.locator(".box", { hasText: "Attention" });
  const before = await attention.boundingBox();
  await page.mouse.move(1100, 700); // from below the card
  await page.mouse.down();
  await page.mouse.move(900, 640, { steps: 4 });
  await page.mouse.up();
  await page.waitForTimeout(REST);
  const moved = await attention.boundingBox();
  assert.ok(before && moved && Math.abs(before.x - moved.x - 200) < 2);
  assert.ok(await details.isVisible());
  await page.screenshot({ path: join(folder, "node.png") });
  await press(page, "Escape");
  assert.equal(await details.isVisible(), false);
  await finish(page);
});

test("a raised line shows its equations, and an equation its node", async () => {
  const page = await open("attention.html");
  await choose(page, "raised", "attention");
  const equations = await page.locator(".pane.program .line.chosen").allInnerTexts();
  assert.ok(equations.some((text) => text.includes("dot_general")));
  assert.ok(equations.some((text) => text.includes("exp")));
  await choose(page, "program", /= exp /);
  assert.ok((await page.locator(".box.chosen .op").allTextContents()).includes("Attention"));
  await finish(page);
});

test("the remark of a neighbour that was not fused is with the node", async () => {
  const page = await open("near-miss.html");
  await page.locator(".box", { hasText: "Div" }).click();
  await drawn(page);
  assert.match(await page.locator(".details .remarks").innerText(), /softmax/);
  await page.locator('[data-tab="totals"]').click();
  await drawn(page);
  assert.match(await page.locator(".panel").innerText(), /Nearly raised/);
  await finish(page);
});

test("the search finds layers, nodes and lines", async () => {
  const page = await open("vit48.html");
  await press(page, "/");
  await page.keyboard.type("blocks.7.mlp");
  await page.waitForSelector(".hits li .kind");
  await press(page, "ArrowDown");
  await press(page, "Enter");
  await page.waitForSelector(".details h3");
  assert.ok((await page.locator(".chosen").count()) > 0);
  await finish(page);
});

test("layers open and close, and keys walk the graph", async () => {
  const page = await open("vit48.html");
  await press(page, "4");
  await press(page, "c");
  await page.waitForFunction(() => document.querySelectorAll(".group.open").length === 0);
  const closed = await page.locator(".graph .group, .graph .box").count();
  await page.locator(".group.closed", { hasText: "blocks" }).locator("[data-toggle]").click();
  await drawn(page);
  await page.waitForFunction(() => document.querySelectorAll(".group.open").length === 1);
  assert.ok((await page.locator(".graph .group, .graph .box").count()) > closed);
  await press(page, "c");
  await press(page, "ArrowDown");
  await page.waitForSelector(".box.current, .group.current");
  for (let i = 0; i < 6; i++) {
    await press(page, "ArrowDown");
    if ((await page.locator(".group.current").count()) > 0) break;
  }
  await press(page, "Enter");
  await page.waitForSelector(".group.open");
  await finish(page, "layers");
});

test("functions and loops open and close, and a call leads to its function", async () => {
  const page = await open("functions.html");
  const group = (key: string) => page.locator(`.graph .group[data-key="g/${key}"]`);
  const toggle = async (key: string) => {
    await group(key).locator("[data-toggle]").click();
    await drawn(page);
  };
  const calls = page.locator(".details .links button");
  const boxes = () => page.locator(".graph .box .op").allTextContents();
  await press(page, "4");
  await press(page, "c");
  assert.ok(!(await boxes()).includes("Tanh"));
  await toggle("Scan#3");
  assert.ok((await boxes()).includes("Tanh"));
  await toggle("Scan#3");
  assert.ok(!(await boxes()).includes("Tanh"));

  const inFunction = "Gelu";
  assert.ok(!(await boxes()).includes(inFunction));
  await toggle("blocks");
  await page.locator(".graph .box", { hasText: "blocks" }).first().click();
  await drawn(page);
  await page.locator(".details button", { hasText: "open the function" }).click();
  await drawn(page);
  assert.equal(await group("function custom.blocks").count(), 1);
  assert.match(
    (await group("function custom.blocks").getAttribute("class")) ?? "",
    /open.*current/,
  );
  await press(page, "e");
  assert.ok((await boxes()).includes(inFunction));
  await page.screenshot({ path: join(folder, "functions.png") });

  assert.equal(await calls.count(), 2);
  await calls.nth(1).click();
  await drawn(page);
  assert.match(await page.locator(".details h3").innerText(), /blocks/);
  await toggle("function custom.blocks");
  assert.ok(!(await boxes()).includes(inFunction));
  await finish(page);
});

test("keys walk the lines of a pane", async () => {
  const page = await open("attention.html");
  await press(page, "1");
  await press(page, "ArrowDown");
  const first = await page.locator(".pane.source .line.cursor").innerText();
  await press(page, "ArrowDown");
  await page.waitForFunction(
    (text) => document.querySelector<HTMLElement>(".pane.source .line.cursor")?.innerText !== text,
    first,
  );
  await finish(page);
});

test("totals, runtimes, verification and profile", async () => {
  const page = await open("vit.html");
  const text = async (tab: string) => {
    await page.locator(`[data-tab="${tab}"]`).click();
    await drawn(page);
    return page.locator(`[data-view="${tab}"]`).innerText();
  };
  assert.match(await text("totals"), /blocks\.0/);
  assert.match(await text("totals"), /LayerNormalization/);
  await page.screenshot({ path: join(folder, "totals.png") });
  assert.match(await text("runtimes"), /1\.23/);
  await page.screenshot({ path: join(folder, "runtimes.png") });
  assert.match(await text("verification"), /JAX's numbers/);
  assert.match(await text("verification"), /Error by layer/);
  await page.screenshot({ path: join(folder, "verification.png") });
  assert.match(await text("profile"), /jax\.jit/);
  await page.screenshot({ path: join(folder, "profile.png") });
  await finish(page);
});

test("each runtime says which versions load the model, and which node others lack", async () => {
  const page = await open("newest.html");
  await page.locator('[data-tab="runtimes"]').click();
  await drawn(page);
  const cards = page.locator('[data-view="runtimes"] .card');
  assert.deepEqual(await cards.locator("h2").allInnerTexts(), [
    "ONNX Runtime",
    "ONNX Runtime Web",
    "OpenVINO",
  ]);
  assert.match(await cards.nth(0).innerText(), /from 1\.24 on.*What to change: .*1\.23/s);
  assert.match(await cards.nth(1).innerText(), /from 1\.24 on/);
  assert.equal(await cards.nth(2).locator("table").count(), 0);
  await page.screenshot({ path: join(folder, "newest.png") });
  await cards.nth(0).locator("td button", { hasText: "Max" }).first().click();
  await drawn(page);
  assert.deepEqual(await page.locator(".box.chosen .op").allTextContents(), ["Max"]);
  await finish(page);
});

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

test("a model of another tool shows what there is", async () => {
  const page = await open("plain.html");
  assert.equal(await page.locator(".pane.program").count(), 0);
  await page.locator(".box").first().click();
  await drawn(page);
  await finish(page, "plain");
});

interface Cost {
  wall: number; // milliseconds from the input to the frame that shows what became of it
  thread: number; // those that the page's own thread computed, whatever else the machine does
}

type Action = (time: number) => Promise<void>;

const milliseconds = ({ wall, thread }: Cost) =>
  `${wall.toFixed(0)} ms (${thread.toFixed(0)} ms of its thread)`;

async function thread(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1000 * (metrics.find((metric) => metric.name === "TaskDuration")?.value ?? 0);
  };
}

// Runs in the page: remembers how long after the next input the page has drawn. What a handler puts
// off to the next frame belongs to it; the message arrives when that frame is painted.
function watch(kind: string): void {
  const page = window as { reaction?: Promise<number> };
  page.reaction = new Promise((done) => {
    const drawnAfter = (event: Event) =>
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done(performance.now() - event.timeStamp);
        port2.postMessage("painted");
      });
    addEventListener(kind, drawnAfter, { capture: true, once: true });
  });
}

// Times what the mouse and the keyboard do, at least three times. Other programs lengthen the wall time:
// its shortest counts, and it is taken more often while it is above the limit. Of the thread's the longest
// counts.
async function react(
  page: Page,
  kind: string,
  act: Action,
  limit: number,
  prepare?: Action,
): Promise<Cost> {
  const MOST = 10;
  const spent = await thread(page);
  const cost: Cost = { wall: Infinity, thread: 0 };
  for (let time = 0; time < 3 || (cost.wall > limit && time < MOST); time++) {
    await prepare?.(time);
    await page.evaluate(watch, kind);
    const before = await spent();
    await act(time);
    const wall = await page.evaluate(() => (window as { reaction?: Promise<number> }).reaction);
    await page.waitForTimeout(REST);
    cost.wall = Math.min(cost.wall, wall ?? Infinity);
    cost.thread = Math.max(cost.thread, (await spent()) - before);
  }
  return cost;
}

// Clicks what the selector finds, where the mouse can reach it.
async function clickOn(page: Page, selector: string, time: number): Promise<void> {
  const places = await page.locator(selector).evaluateAll((elements) =>
    elements.flatMap((element) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      const place = { x: left + Math.min(width / 2, 60), y: top + height / 2 };
      return element.contains(document.elementFromPoint(place.x, place.y)) ? [place] : [];
    }),
  );
  const place = places[time % places.length];
  assert.ok(place, `the mouse reaches no ${selector}`);
  await page.mouse.click(place.x, place.y);
}

// The best of three: a page of its own for each, from the address to the drawn graph.
async function opening(name: string): Promise<Cost> {
  const costs: Cost[] = [];
  for (let time = 0; time < 3; time++) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 950 } });
    const spent = await thread(page);
    const start = performance.now();
    await page.goto(`file://${join(folder, name)}`);
    await page.waitForSelector(".graph .box, .graph .group");
    await drawn(page);
    costs.push({ wall: performance.now() - start, thread: await spent() });
    await page.close();
  }
  return {
    wall: Math.min(...costs.map((cost) => cost.wall)),
    thread: Math.min(...costs.map((cost) => cost.thread)),
  };
}

// Prints what was measured, and fails for what is above its limit.
function judge(t: { diagnostic: (text: string) => void }, limits: [string, Cost, number][]): void {
  const slow = [];
  for (const [what, cost, limit] of limits) {
    t.diagnostic(`${what}: ${milliseconds(cost)}`);
    if (Math.max(cost.wall, cost.thread) > limit) slow.push(`${what}: ${milliseconds(cost)}`);
  }
  assert.deepEqual(slow, []);
}

test("48 layers open within 2 s and react within 100 ms", async (t) => {
  const opened = await opening("vit48.html");
  const page = await open("vit48.html");
  const clicks: [string, string][] = [
    ["a click on a source line", ".pane.source .line.linked"],
    ["a click on a node", ".graph .box"],
    ["a click on a group", ".graph .group.closed"],
    ["a click that opens a group", ".graph .group.closed .sign"],
    ["a click that closes a group", ".graph .group.open .sign"],
  ];
  const measured: [string, Cost, number][] = [["opening", opened, 2000]];
  for (const [what, selector] of clicks) {
    const act = (time: number) => clickOn(page, selector, time);
    measured.push([what, await react(page, "click", act, 100), 100]);
  }
  await press(page, "/");
  const letters = async (time: number) => page.keyboard.type("mlp"[time % 3] ?? "");
  measured.push(["a letter of a search", await react(page, "input", letters, 100), 100]);
  const find = async () => {
    await press(page, "Escape");
    await press(page, "Escape"); // nothing is chosen
    await press(page, "/");
    await page.keyboard.type("mlp");
    await press(page, "ArrowDown");
  };
  const choice = await react(page, "keydown", () => page.keyboard.press("Enter"), 100, find);
  measured.push(["a choice of what it finds", choice, 100]);
  assert.ok((await page.locator(".graph .chosen").count()) > 0);
  await finish(page);
  judge(t, measured);
});

test("5,000 nodes open within 2 s, a level within 500 ms, and the wheel moves them within 100 ms", async (t) => {
  const opened = await opening("large.html");
  const page = await open("large.html");
  await page.locator("div.graph").focus();
  const measured: [string, Cost, number][] = [["opening", opened, 2000]];
  for (let level = 0; level < 3; level++) {
    const outer = async () => {
      await press(page, "c");
      for (let i = 0; i < level; i++) await press(page, "e");
    };
    const cost = await react(page, "keydown", () => page.keyboard.press("e"), 500, outer);
    measured.push([`opening level ${level + 1}`, cost, 500]);
  }
  for (let i = 0; i < 2; i++) await press(page, "e");
  await page.mouse.move(1200, 400);
  const wheel = (by: number) => react(page, "wheel", () => page.mouse.wheel(0, by), 100);
  await wheel(-200);
  const elements = await page.locator(".graph svg *").count();
  assert.ok(elements > 4000, `only ${elements} elements are drawn`);
  t.diagnostic(`${elements} elements are drawn`);
  measured.push(["a step of the wheel that enlarges", await wheel(-200), 100]);
  measured.push(["a step of the wheel that shrinks", await wheel(200), 100]);
  await finish(page, "large");
  judge(t, measured);
});

test("the page itself is small", () => {
  const TWO_MEGABYTES = 2e6;
  assert.ok(statSync(join(folder, "attention.html")).size < TWO_MEGABYTES);
});
