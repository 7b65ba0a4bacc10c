// SPDX-License-Identifier: Apache-2.0
// Drives the page in Chromium: what is chosen in one pane shows in the others.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REST, choose, drawn, finish, folder, open, press } from "./driver.ts";

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

test("a model of another tool shows what there is", async () => {
  const page = await open("plain.html");
  assert.equal(await page.locator(".pane.program").count(), 0);
  await page.locator(".box").first().click();
  await drawn(page);
  await finish(page, "plain");
});

test("the page itself is small", () => {
  const TWO_MEGABYTES = 2e6;
  assert.ok(statSync(join(folder, "attention.html")).size < TWO_MEGABYTES);
});
