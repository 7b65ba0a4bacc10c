// SPDX-License-Identifier: Apache-2.0
// node site.mjs FOLDER SCREENSHOTS PAGE… -- PAGE…: opens pages, the first ones in both colour schemes with axe-core;
// prints what is wrong with them, as JSON.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { withPage, require } from "./visit.mjs";

const [folder, screenshots, ...pages] = process.argv.slice(2);
const end = pages.indexOf("--") < 0 ? pages.length : pages.indexOf("--");
const axe = await readFile(require.resolve("axe-core"), "utf8");
const RULES = { runOnly: ["wcag2a", "wcag2aa"] };
const BUT = { exclude: ["tbody tr:nth-child(n + 10)"] }; // the rows of a table are alike

/** What axe-core finds: contrast, names of fields and links, … */
async function accessibility(page) {
  const run = ([but, rules]) => window.axe.run(but, rules);
  const { violations } = await page.evaluate(run, [BUT, RULES]);
  return violations.flatMap((violation) =>
    violation.nodes.slice(0, 3).map((node) => `${violation.id}: ${node.html.slice(0, 160)}`),
  );
}

/** The tab key must reach the content, and what has the focus must show it. */
async function keyboard(page) {
  const reached = new Set();
  for (let i = 0; i < 12; ++i) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const shows = style.outlineStyle !== "none" || element.matches("input, label, [tabindex]");
      return { name: element.outerHTML.slice(0, 120), shows };
    });
    if (!focused.shows) return [`no focus is shown: ${focused.name}`];
    reached.add(focused.name);
  }
  return reached.size > 4 ? [] : [`the tab key reaches ${reached.size} places only`];
}

const VISIBLE = ".md-content tbody tr:visible";

/** Of a page with long tables: one field hides rows and empty headings, the address keeps the words. */
async function filter(page) {
  const field = page.locator("input.filter");
  if ((await field.count()) === 0) return [];
  const problems = [];
  const expect = (isSo, what) => isSo || problems.push(`filter: ${what}`);
  const rows = () => page.locator(VISIBLE).count();
  const before = await rows();
  await field.fill("no row has this text");
  expect((await rows()) === 0, "rows without the text are shown");
  expect(
    (await page.locator(".md-content thead:visible").count()) === 0,
    "an empty table is shown",
  );
  const above = ".md-content :is(h2, h3):not([hidden]) + .md-typeset__scrollwrap";
  expect((await page.locator(above).count()) === 0, "a heading above an empty table is shown");
  const word = await page.evaluate(
    () => /[\w-]{3,}/.exec(document.querySelector("tbody tr:last-child").textContent)[0],
  );
  await field.fill(word);
  const some = await rows();
  expect(some > 0 && some <= before, `${some} of ${before} rows have ${word}`);
  expect(page.url().endsWith(`#filter=${word}`), `the address is ${page.url()}`);
  await page.reload();
  expect(
    (await field.inputValue()) === word && (await rows()) === some,
    "the address does not filter",
  );
  const continued = await page.evaluate(() => {
    const rows = [...document.querySelectorAll(".md-content tbody tr + tr")];
    const next = rows.find((row) => row.cells[0].textContent.trim() === "");
    return next?.previousElementSibling.cells[0].textContent.trim();
  });
  await field.fill(continued ?? "");
  expect(!continued || (await rows()) > 1, `rows that go on with ${continued} are hidden`);
  await field.fill("");
  expect((await rows()) === before, "rows do not come back");
  expect(!page.url().includes("#"), "the address keeps words that are gone");
  return problems;
}

/** A click on the head of a column sorts by it, a second one the other way round. */
async function sorting(page) {
  const table = page
    .locator(".md-content table")
    .filter({ has: page.locator("button.sort") })
    .first();
  if ((await table.count()) === 0) return [];
  const head = table.locator("th").first();
  const column = async (order) => {
    await head.locator("button").click();
    if ((await head.getAttribute("aria-sort")) !== order) return [`not ${order}`];
    return table.locator("tbody tr td:first-child").allInnerTexts();
  };
  const up = await column("ascending");
  const down = await column("descending");
  const isSorted = up[0] === down.at(-1) && up.at(-1) === down[0] && !up.includes("");
  return isSorted ? [] : [`sorting: ${up[0]} to ${up.at(-1)}, ${down[0]} to ${down.at(-1)}`];
}

/** Both colour schemes, and the keyboard. */
async function closely(page, name) {
  const problems = [];
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.reload();
    await page.evaluate(axe);
    problems.push(...(await accessibility(page)).map((text) => `${scheme}: ${text}`));
    const picture = `${name.replaceAll("/", "-").replace(".html", "")}-${scheme}.png`;
    await page.screenshot({ path: join(screenshots, picture) });
  }
  return [...problems, ...(await keyboard(page))];
}

const found = {};
await withPage(
  folder,
  { viewport: { width: 1200, height: 900 } },
  async (page, address, problems) => {
    await page.addInitScript(() => localStorage.clear()); // the theme remembers a scheme
    const visit = async (name, look) => {
      problems.length = 0;
      await page.goto(`${address}/${name}`);
      found[name] = [
        ...(await look(name)),
        ...(await filter(page)),
        ...(await sorting(page)),
        ...problems,
      ];
    };
    for (const name of pages.slice(0, end)) await visit(name, () => closely(page, name));
    for (const name of pages.slice(end + 1)) await visit(name, () => []);
  },
);
console.log(JSON.stringify(found));
