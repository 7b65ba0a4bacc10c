// SPDX-License-Identifier: Apache-2.0
// node site.mjs FOLDER SCREENSHOTS PAGE…: opens pages in both colour schemes; prints what is wrong with them, as JSON.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { withPage, require } from "./visit.mjs";

const [folder, screenshots, ...pages] = process.argv.slice(2);
const axe = await readFile(require.resolve("axe-core"), "utf8");
const RULES = { runOnly: ["wcag2a", "wcag2aa"] };
const BUT = { exclude: ["tbody tr:nth-child(n + 30)"] }; // the rows of a table are alike

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

/** A long table has a field that hides the rows without its text. */
async function filter(page) {
  const field = page.locator("input[type=search][aria-label^=filter]").first();
  if ((await field.count()) === 0) return [];
  const rows = page.locator(".md-content tbody tr:visible");
  const before = await rows.count();
  await field.fill("no row has this text");
  const after = await rows.count();
  await field.fill("");
  return after < before ? [] : ["the filter hides no row"];
}

const found = {};
await withPage(
  folder,
  { viewport: { width: 1200, height: 900 } },
  async (page, address, problems) => {
    for (const name of pages) {
      problems.length = 0;
      const here = (found[name] = []);
      for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
        await page.goto(`${address}/${name}`);
        await page.evaluate(() => localStorage.clear()); // the theme remembers a scheme
        await page.reload();
        await page.evaluate(axe);
        here.push(...(await accessibility(page)).map((text) => `${scheme}: ${text}`));
        const picture = `${name.replaceAll("/", "-").replace(".html", "")}-${scheme}.png`;
        await page.screenshot({ path: join(screenshots, picture) });
      }
      here.push(...(await keyboard(page)), ...(await filter(page)), ...problems);
    }
  },
);
console.log(JSON.stringify(found));
