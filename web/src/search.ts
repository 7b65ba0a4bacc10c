// SPDX-License-Identifier: Apache-2.0
// The search box: nodes, layers and lines of all panes that hold a text.
import type { PageData } from "./data.ts";
import { el } from "./dom.ts";
import type { Group, Tree } from "./tree.ts";

export interface Hit {
  kind: string;
  text: string;
  act: () => void;
}

export interface SearchTargets {
  data: PageData;
  tree: Tree;
  lists: { name: string; lines: { text: string }[]; choose: (line: number) => void }[];
  onNode: (node: number) => void;
  onGroup: (group: Group) => void;
}

const MOST_OF_A_KIND = 12;

export function search(targets: SearchTargets, wanted: string): Hit[] {
  const text = wanted.trim().toLowerCase();
  if (text === "") return [];
  const hits: Hit[] = [];
  const add = (kind: string, found: Omit<Hit, "kind">[]) => {
    for (const hit of found.slice(0, MOST_OF_A_KIND)) hits.push({ kind, ...hit });
  };
  const nameOf = (group: Group) => group.id.slice(1).replaceAll("/", ".");
  const groups = [...targets.tree.allGroups].filter((g) => nameOf(g).toLowerCase().includes(text));
  add(
    "layer",
    groups
      .sort((a, b) => a.id.length - b.id.length)
      .map((group) => ({
        text: nameOf(group),
        act: () => targets.onGroup(group),
      })),
  );
  const nodes = targets.data.nodes.flatMap((node, i) =>
    `${node.op} ${node.name} ${node.layer ?? ""}`.toLowerCase().includes(text)
      ? [{ text: `${node.op}  ${node.name}`, act: () => targets.onNode(i) }]
      : [],
  );
  add("node", nodes);
  for (const { name, lines, choose } of targets.lists) {
    const found = lines.flatMap((line, i) =>
      line.text.toLowerCase().includes(text)
        ? [{ text: line.text.trim(), act: () => choose(i) }]
        : [],
    );
    add(name.toLowerCase(), found);
  }
  return hits;
}

export class SearchBox {
  readonly element: HTMLElement;
  readonly input = el("input", {
    type: "search",
    placeholder: "Search  ( / )",
    "aria-label": "search nodes, layers and lines",
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": "hits",
  });
  private readonly list = el("ul", {
    id: "hits",
    class: "hits",
    role: "listbox",
    "aria-label": "what was found",
  });
  private hits: Hit[] = [];
  private at = 0;

  constructor(private readonly targets: SearchTargets) {
    this.element = el("div", { class: "search" }, this.input, this.list);
    this.list.hidden = true;
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.input.addEventListener("focus", () => this.find());
  }

  // What was looked for before is replaced by what is typed.
  start(): void {
    this.input.focus();
    this.input.select();
  }

  private find(): void {
    this.hits = search(this.targets, this.input.value);
    this.at = 0;
    this.draw();
  }

  private draw(): void {
    const rows = this.hits.map((hit, i) => {
      const row = el(
        "li",
        { role: "option", id: `hit-${i}`, "aria-selected": String(i === this.at) },
        el("span", { class: "kind" }, hit.kind),
        el("span", {}, hit.text),
      );
      row.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        this.take(i);
      });
      return row;
    });
    const nothing = el(
      "li",
      { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" },
      "nothing found",
    );
    this.list.replaceChildren(...(rows.length ? rows : [nothing]));
    this.list.hidden = this.input.value.trim() === "";
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    const current = this.list.hidden ? undefined : rows[this.at];
    if (current) this.input.setAttribute("aria-activedescendant", current.id);
    else this.input.removeAttribute("aria-activedescendant");
    current?.scrollIntoView({ block: "nearest" });
  }

  private take(i: number): void {
    this.close();
    this.input.blur();
    this.hits[i]?.act();
  }

  private close(): void {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  private onKey(event: KeyboardEvent): void {
    const last = this.hits.length - 1;
    if (event.key === "ArrowDown") this.at = Math.min(this.at + 1, last);
    else if (event.key === "ArrowUp") this.at = Math.max(this.at - 1, 0);
    else if (event.key === "Enter") return this.take(this.at);
    else if (event.key === "Escape") {
      this.close();
      this.input.blur();
      return;
    } else return;
    event.preventDefault();
    this.draw();
  }
}
