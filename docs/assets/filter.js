// SPDX-License-Identifier: Apache-2.0
// A field above every long table that hides the rows without its text; tables that are wider than the
// page can be reached and moved with the keyboard.
const LONG = 25;

// The theme wraps tables when the page is there.
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap, pre code")) {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
  }
});

for (const table of document.querySelectorAll(".md-content table")) {
  const rows = [...table.querySelectorAll("tbody tr")];
  if (rows.length < LONG) continue;
  const field = document.createElement("input");
  const count = document.createElement("span");
  field.type = "search";
  field.placeholder = `filter ${rows.length} rows`;
  field.setAttribute("aria-label", field.placeholder);
  field.style.cssText =
    "padding: .3em .6em; margin: .6em .6em .6em 0; border: 1px solid; border-radius: .2em;";
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = field.value ? `${shown} rows` : "";
  });
  const place = table.closest(".md-typeset__scrollwrap") ?? table;
  place.before(field, count);
}
