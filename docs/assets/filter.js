// SPDX-License-Identifier: Apache-2.0
// One field above a page with long tables: it hides the rows without its words and the headings below
// which nothing is left. The words are a part of the address, as in ecosystem.html#filter=keras. A click
// on the head of a column sorts a table. Tables that are wider than the page are moved with the keyboard.
const LONG = 25; // rows of a table that one filters and sorts
const HASH = "#filter=";

// The theme wraps tables when the page is there.
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap, pre code")) {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
  }
});

const content = document.querySelector(".md-content__inner");
const tables = [...(content?.querySelectorAll("table") ?? [])];
const longest = Math.max(0, ...tables.map((table) => table.tBodies[0]?.rows.length ?? 0));

/** A row that begins with empty cells belongs to the one above it, and has its texts there. */
function linesOf(table) {
  let above = [];
  return [...table.tBodies[0].rows].map((row) => {
    const own = [...row.cells];
    const first = own.findIndex((cell) => cell.textContent.trim() !== "");
    const cells = own.map((cell, i) => (i < first ? above[i] : cell));
    above = cells;
    const texts = cells.map((cell) => cell.textContent.trim());
    return { row, cells, texts, words: texts.join(" ").toLowerCase() };
  });
}

/** By size where both are numbers, as in "1,012" and "98.9 %". */
function compare(a, b) {
  const isNumber = /^[-+]?\d[\d,]*\.?\d*(e[-+]?\d+)?( ?%| m?s|\/\d+)?$/i;
  if (!isNumber.test(a) || !isNumber.test(b)) return a.localeCompare(b);
  return parseFloat(a.replaceAll(",", "")) - parseFloat(b.replaceAll(",", ""));
}

/** Once rows move, each must say for itself what it belongs to. */
function fill({ row, cells }) {
  cells.forEach((cell, i) => {
    if (row.cells[i] !== cell) row.cells[i].innerHTML = cell.innerHTML;
  });
}

function makeSortable(table, lines) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  heads.forEach((head, i) => {
    if (head.textContent.trim() === "") return;
    const button = document.createElement("button");
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isUp = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      const sign = isUp ? 1 : -1;
      const sorted = [...lines].sort((a, b) => sign * compare(a.texts[i] ?? "", b.texts[i] ?? ""));
      sorted.forEach(fill);
      table.tBodies[0].append(...sorted.map(({ row }) => row));
    });
  });
}

/** Hides headings below which every table is empty; what has no table stays. */
function hideEmptyHeadings(isFiltered) {
  const open = []; // headings that the next elements belong to
  const shows = new Map();
  for (const element of content.querySelectorAll("h2, h3, h4, table")) {
    if (element.tagName === "TABLE") {
      const isShown = [...element.tBodies[0].rows].some((row) => !row.hidden);
      element.hidden = !isShown;
      for (const heading of open) shows.set(heading, shows.get(heading) || isShown);
      continue;
    }
    while (open.length && open.at(-1).tagName >= element.tagName) open.pop();
    open.push(element);
    element.hidden = false;
  }
  for (const [heading, isShown] of shows) heading.hidden = isFiltered && !isShown;
}

function addFilter() {
  const lines = tables.map(linesOf);
  const rows = lines.flat();
  const field = document.createElement("input");
  const count = document.createElement("span");
  field.type = "search";
  field.className = "filter";
  field.placeholder = `filter ${rows.length.toLocaleString("en")} rows`;
  field.setAttribute("aria-label", field.placeholder);
  count.setAttribute("role", "status");
  const apply = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { row, words } of rows) row.hidden = !wanted.every((word) => words.includes(word));
    hideEmptyHeadings(wanted.length > 0);
    const shown = rows.filter(({ row }) => !row.hidden).length;
    count.textContent = wanted.length ? `${shown.toLocaleString("en")} rows` : "";
  };
  const read = () => {
    if (!location.hash.startsWith(HASH)) return;
    field.value = decodeURIComponent(location.hash.slice(HASH.length));
    apply();
    rows.find(({ row }) => !row.hidden)?.row.scrollIntoView({ block: "center" });
  };
  field.addEventListener("input", () => {
    apply();
    const hash = field.value ? HASH + encodeURIComponent(field.value) : "";
    history.replaceState(null, "", location.pathname + location.search + hash);
  });
  addEventListener("hashchange", read);
  const bar = document.createElement("div");
  bar.className = "filter-bar";
  bar.append(field, count);
  content.querySelector("h1")?.after(bar);
  tables.forEach((table, i) => makeSortable(table, lines[i]));
  read();
}

if (longest >= LONG) addFilter();
