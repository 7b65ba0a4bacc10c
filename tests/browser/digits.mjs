// SPDX-License-Identifier: Apache-2.0
// node digits.mjs FOLDER SCREENSHOT: draws digits on the demo page; prints what was read, as JSON.
import { withPage } from "./visit.mjs";

const [folder, screenshot] = process.argv.slice(2);

// Strokes on a square of 0 to 100, as a hand would draw them.
const arc = (x, y, width, height, from, to) =>
  Array.from({ length: 25 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / 24) * Math.PI) / 180;
    return [x + width * Math.cos(angle), y + height * Math.sin(angle)];
  });
const DRAWINGS = {
  0: [arc(50, 50, 22, 36, -90, 270)],
  1: [
    [
      [38, 26],
      [52, 14],
      [52, 86],
    ],
  ],
  2: [[...arc(50, 32, 20, 20, 190, 390), [30, 84], [72, 84]]],
  3: [[...arc(48, 32, 18, 18, 200, 440), ...arc(48, 67, 20, 19, -80, 160)]],
  4: [
    [
      [56, 12],
      [28, 60],
      [76, 60],
    ],
    [
      [60, 38],
      [60, 88],
    ],
  ],
  5: [[[70, 14], [36, 14], [33, 46], ...arc(48, 64, 22, 22, -120, 150)]],
  6: [[[60, 12], [38, 40], ...arc(50, 65, 19, 20, -170, 190)]],
  7: [
    [
      [30, 16],
      [72, 16],
      [46, 86],
    ],
  ],
  8: [[...arc(50, 32, 16, 17, 90, 450)], [...arc(50, 67, 19, 18, -90, 270)]],
  9: [[...arc(50, 34, 19, 20, 10, 370), [66, 60], [58, 88]]],
};

async function draw(page, strokes) {
  const box = await page.locator("#canvas").boundingBox();
  const place = ([x, y]) => [box.x + (x / 100) * box.width, box.y + (y / 100) * box.height];
  for (const stroke of strokes) {
    await page.mouse.move(...place(stroke[0]));
    await page.mouse.down();
    for (const point of stroke.slice(1)) await page.mouse.move(...place(point));
    await page.mouse.up();
  }
}

const read = {};
let found;
await withPage(
  folder,
  { viewport: { width: 760, height: 560 } },
  async (page, address, problems) => {
    found = problems;
    await page.goto(`${address}/`);
    await page.getByText("draw a digit", { exact: true }).waitFor();
    for (const [digit, strokes] of Object.entries(DRAWINGS)) {
      await page.keyboard.press("Escape");
      await draw(page, strokes);
      await page.locator(`#answer[data-strokes="${strokes.length}"]`).waitFor();
      read[digit] = Number(await page.locator("#answer").getAttribute("data-digit"));
      if (digit === "3") await page.screenshot({ path: screenshot });
    }
  },
);
console.log(JSON.stringify({ read, problems: found }));
