// SPDX-License-Identifier: Apache-2.0
// Puts the page together: the header, the panes, the panels, and what a choice in one does to all.
import { type PageData, readData } from "./data.ts";
import { Details } from "./details.ts";
import { count, el, escaped, short } from "./dom.ts";
import { GraphView } from "./graph.ts";
import { Links, nothing, type Pane, type Selection } from "./links.ts";
import { List } from "./list.ts";
import { paintProgram, paintPython } from "./paint.ts";
import { profilePanel, totalsPanel, verificationPanel } from "./panels.ts";
import { runtimesPanel } from "./runtimes.ts";
import { SearchBox } from "./search.ts";
import { startTheme, toggleTheme } from "./theme.ts";
import { type Group, Tree } from "./tree.ts";

type TextPane = "source" | "program" | "raised";

const TITLES: Record<Pane, string> = {
  source: "Source",
  program: "jaxpr",
  raised: "Raised",
  graph: "ONNX",
};

class Page {
  private readonly links: Links;
  private readonly tree: Tree;
  private readonly lists = new Map<TextPane, List>();
  private readonly counters = new Map<Pane, HTMLElement>();
  private readonly graph: GraphView;
  private readonly details: Details;
  private readonly search: SearchBox;
  private readonly tabs = new Map<string, { button: HTMLElement; view: HTMLElement }>();
  private readonly panes = el("div", { class: "panes", "data-pane": "graph" });

  constructor(private readonly data: PageData) {
    this.links = new Links(data);
    this.tree = new Tree(data);
    this.graph = new GraphView({
      tree: this.tree,
      heat: heatOf(data),
      onNode: (node) => this.chooseNode(node),
      onGroup: (group) => this.chooseGroup(group),
      onNothing: () => this.clear(),
    });
    this.details = new Details({
      data,
      tree: this.tree,
      links: this.links,
      onNode: (node) => this.goTo(node),
      onInside: (group) => this.goToGroup(group, true),
      onLine: (line) => this.chooseLine("source", line),
      onClose: () => this.clear(),
    });
    this.addLists();
    this.search = new SearchBox({
      data,
      tree: this.tree,
      lists: this.searchedLists(),
      onNode: (node) => this.goTo(node),
      onGroup: (group) => this.goToGroup(group),
    });
  }

  show(): void {
    const app = document.getElementById("app");
    const bar = el("nav", { class: "tabs", role: "tablist", "aria-label": "views" });
    app?.replaceChildren(this.header(bar), el("main", {}, ...this.views(bar)));
    bar.addEventListener("keydown", (event) => this.onTabKey(event));
    this.open("explore");
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.title = `${this.data.title} · jaxport`;
  }

  // --- parts

  private header(bar: HTMLElement): HTMLElement {
    const { model } = this.data;
    const facts = [
      count(model.nodes, "node"),
      `${short(model.parameters)} parameters`,
      short(model.bytes, "B"),
      `opset ${model.opset}`,
      model.requires,
    ];
    const theme = el("button", { type: "button", class: "icon", title: "light or dark (t)" }, "◐");
    theme.setAttribute("aria-label", "light or dark");
    theme.addEventListener("click", toggleTheme);
    return el(
      "header",
      { class: "top" },
      el("div", { class: "brand" }, el("b", {}, "jaxport"), el("h1", {}, this.data.title)),
      el("p", { class: "about" }, facts.filter((fact) => fact.trim() !== "").join(" · ")),
      bar,
      this.search.element,
      theme,
    );
  }

  private views(bar: HTMLElement): HTMLElement[] {
    const options = {
      data: this.data,
      tree: this.tree,
      onNode: (node: number) => this.goTo(node),
      onGroup: (group: Group) => this.goToGroup(group),
      onSource: (source: number) => {
        const line = this.links.sourceLineOf(source);
        this.open("explore");
        if (line !== undefined) this.chooseLine("source", line);
      },
    };
    const views: [string, string, () => HTMLElement, boolean][] = [
      ["explore", "Explore", () => this.explorer(), true],
      ["totals", "Totals", () => totalsPanel(options), true],
      ["runtimes", "Runtimes", () => runtimesPanel(options), true],
      ["verification", "Verification", () => verificationPanel(options), !!this.data.verification],
      ["profile", "Profile", () => profilePanel(options), !!this.data.profile],
    ];
    const made: HTMLElement[] = [];
    for (const [key, title, make, isThere] of views) {
      if (!isThere) continue;
      const [id, tab] = [`view-${key}`, `tab-${key}`];
      const view = el("div", { class: "view", role: "tabpanel", id, "aria-labelledby": tab });
      view.dataset.view = key;
      view.hidden = true;
      const attributes = { type: "button", role: "tab", id: tab, "aria-controls": id };
      const button = el("button", attributes, title);
      button.dataset.tab = key;
      button.addEventListener("click", () => this.open(key, make));
      bar.append(button);
      this.tabs.set(key, { button, view });
      if (key === "explore") view.append(make());
      made.push(view);
    }
    return made;
  }

  // A panel is made when it is looked at.
  private open(key: string, make?: () => HTMLElement): void {
    for (const [other, { button, view }] of this.tabs) {
      view.hidden = other !== key;
      button.setAttribute("aria-selected", String(other === key));
      button.tabIndex = other === key ? 0 : -1; // the arrows reach the others
    }
    const view = this.tabs.get(key)?.view;
    if (view && make && !view.hasChildNodes()) view.append(make());
    for (const list of this.lists.values()) list.draw(true);
    this.graph.draw();
  }

  // Arrows walk the tabs, as in every list of tabs.
  private onTabKey(event: KeyboardEvent): void {
    const buttons = [...this.tabs.values()].map(({ button }) => button);
    const at = buttons.indexOf(event.target as HTMLElement);
    const steps: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: -1,
    };
    const to = steps[event.key];
    if (at < 0 || to === undefined) return;
    const next = buttons.at(to % buttons.length);
    next?.click();
    next?.focus();
    event.preventDefault();
  }

  private explorer(): HTMLElement {
    const names = [...this.lists.keys(), "graph" as const];
    const switcher = el("div", { class: "switch", role: "group", "aria-label": "panes" });
    for (const name of names) {
      const button = el("button", { type: "button" }, TITLES[name]);
      button.dataset.pane = name;
      button.addEventListener("click", () => this.focusPane(name));
      switcher.append(button);
      const content = name === "graph" ? this.graph.element : this.lists.get(name)?.element;
      if (content) this.panes.append(this.pane(name, content));
      if (name !== "graph") this.panes.append(this.splitter(name));
    }
    this.panes.style.setProperty("--lists", String(this.lists.size));
    return el("div", { class: "explore" }, this.panes, switcher);
  }

  private pane(name: Pane, content: HTMLElement): HTMLElement {
    const counter = el("span", { class: "counter" });
    this.counters.set(name, counter);
    const head = el("header", {}, el("h2", {}, TITLES[name]), counter);
    const list = name === "graph" ? undefined : this.lists.get(name);
    if (list) {
      for (const [sign, step, label] of [
        ["↑", -1, "previous match"],
        ["↓", 1, "next match"],
      ] as const) {
        const button = el("button", { type: "button", "aria-label": label, title: label }, sign);
        button.addEventListener("click", () => list.step(step));
        head.append(button);
      }
    }
    const pane = el(
      "section",
      { class: `pane ${name}`, "aria-label": TITLES[name] },
      head,
      content,
    );
    if (name === "graph") pane.append(this.details.element);
    return pane;
  }

  // A border that is dragged, or moved by the arrows; the graph takes what is left.
  private splitter(name: TextPane): HTMLElement {
    const bar = el("div", {
      class: "splitter",
      role: "separator",
      tabindex: "0",
      "aria-orientation": "vertical",
      "aria-label": `width of ${TITLES[name]}`,
      "aria-valuenow": "20",
    });
    const width = () => (bar.previousElementSibling as HTMLElement).getBoundingClientRect().width;
    const resize = (wanted: number) => {
      this.panes.style.setProperty(`--${name}`, `${Math.max(80, wanted)}px`);
      bar.setAttribute("aria-valuenow", String(Math.round((100 * width()) / innerWidth)));
    };
    bar.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -24, ArrowRight: 24 }[event.key];
      if (by === undefined) return;
      resize(width() + by);
      event.preventDefault();
    });
    bar.addEventListener("pointerdown", (down) => {
      const before = width();
      const move = (event: PointerEvent) => resize(before + event.clientX - down.clientX);
      const up = () => {
        window.removeEventListener("pointermove", move);
        window.removeEventListener("pointerup", up);
      };
      window.addEventListener("pointermove", move);
      window.addEventListener("pointerup", up);
      down.preventDefault();
    });
    return bar;
  }

  private addLists(): void {
    const add = (
      name: TextPane,
      lines: { text: string; label: string }[],
      paint: (text: string) => string,
    ) => {
      if (lines.length === 0) return;
      const badge = name === "source" ? badgesOf(this.data, this.links) : undefined;
      const list = new List({
        name: TITLES[name],
        lines,
        isLinked: (line) => this.links.isLinked(name, line),
        paint,
        onChoose: (line) => this.chooseLine(name, line),
        ...(badge ? { badge } : {}),
      });
      this.lists.set(name, list);
    };
    add("source", this.links.sourceLines, paintPython);
    add("program", numbered(this.data.program?.text), paintProgram);
    add("raised", numbered(this.data.raised?.text), paintProgram);
  }

  private searchedLists() {
    const lines: Record<TextPane, { text: string }[]> = {
      source: this.links.sourceLines,
      program: numbered(this.data.program?.text),
      raised: numbered(this.data.raised?.text),
    };
    return [...this.lists.keys()].map((name) => ({
      name: TITLES[name],
      lines: lines[name],
      choose: (line: number) => {
        this.focusPane(name);
        this.chooseLine(name, line);
      },
    }));
  }

  // --- choices

  private chooseLine(pane: TextPane, line: number): void {
    const found = this.links.ofLine(pane, line);
    this.apply(found, pane, line);
    this.graph.mark(found.nodes);
    this.graph.reveal([...found.nodes]);
    const [only, ...others] = found.nodes;
    if (only !== undefined && others.length === 0) this.details.showNode(only);
    else this.details.clear();
  }

  private chooseNode(node: number): void {
    const found = this.links.ofNodes([node]);
    this.apply(found, "graph");
    this.graph.mark(found.nodes, this.tree.visible(node));
    this.details.showNode(node);
  }

  private chooseGroup(group: Group): void {
    const found = this.links.ofNodes(group.nodes());
    this.apply(found, "graph");
    this.graph.mark(found.nodes, group);
    this.details.showGroup(group);
  }

  // From elsewhere: the node is brought into view.
  private goTo(node: number): void {
    this.open("explore");
    this.focusPane("graph");
    this.chooseNode(node);
    this.graph.reveal([node]);
    this.graph.mark(new Set([node]), this.tree.visible(node));
  }

  private goToGroup(group: Group, andOpen = false): void {
    this.open("explore");
    this.focusPane("graph");
    const opened = andOpen ? [...Tree.around(group), group] : Tree.around(group);
    for (const each of opened) if (!each.expanded) this.graph.toggle(each);
    this.chooseGroup(group);
    this.graph.reveal([...group.nodes()], 0);
  }

  private clear(): void {
    this.apply(nothing(), "graph");
    this.graph.mark(new Set());
    this.details.clear();
  }

  private apply(found: Selection, chosenIn: Pane, line = -1): void {
    for (const [name, list] of this.lists) list.mark(found[name], name === chosenIn ? line : -1);
    for (const [name, counter] of this.counters) {
      const size = name === "graph" ? found.nodes.size : found[name].size;
      counter.textContent = size ? count(size, name === "graph" ? "node" : "line") : "";
    }
  }

  private focusPane(name: Pane): void {
    this.panes.dataset.pane = name;
    for (const button of document.querySelectorAll<HTMLElement>(".switch button")) {
      button.setAttribute("aria-pressed", String(button.dataset.pane === name));
    }
    const content = name === "graph" ? this.graph.element : this.lists.get(name)?.element;
    content?.focus({ preventScroll: true });
    for (const list of this.lists.values()) list.draw(true);
    this.graph.draw();
  }

  // --- keys that work everywhere

  private onKey(event: KeyboardEvent): void {
    const isTyping = event.target instanceof HTMLInputElement;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const names: Pane[] = [...this.lists.keys(), "graph"];
    const pane = names[Number(event.key) - 1];
    if (event.key === "/") this.search.start();
    else if (event.key === "Escape") this.clear();
    else if (event.key === "t") toggleTheme();
    else if (pane) this.focusPane(pane);
    else return;
    event.preventDefault();
  }
}

function numbered(text: string | undefined): { text: string; label: string }[] {
  const lines = (text ?? "").split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line, i) => ({ text: line, label: String(i + 1) }));
}

// The share of a node or a group in the time of all nodes.
function heatOf(data: PageData): (nodes: Iterable<number>) => number | undefined {
  const profile = data.profile;
  if (!profile) return () => undefined;
  const all = Object.values(profile.nodes).reduce((a, b) => a + b, 0);
  return (nodes) => {
    let sum = 0;
    for (const node of nodes) sum += profile.nodes[data.nodes[node]?.name ?? ""] ?? 0;
    return all > 0 ? sum / all : 0;
  };
}

// Behind a source line: what it became, or what it costs.
function badgesOf(data: PageData, links: Links): (line: number) => string {
  const known = new Map<number, string>();
  const share = heatOf(data);
  return (line) => {
    if (!links.isLinked("source", line)) return "";
    const found = known.get(line) ?? badge(data, links.ofLine("source", line), share);
    known.set(line, found);
    return found;
  };
}

function badge(
  data: PageData,
  found: Selection,
  share: (nodes: Iterable<number>) => number | undefined,
): string {
  const time = share(found.nodes);
  const text =
    time === undefined
      ? count(found.nodes.size, "node")
      : `${(time * 100).toFixed(1)} % of the time`;
  const rules = new Set<string>();
  for (const node of found.nodes) {
    const equation = data.nodes[node]?.equation;
    const rule = equation ? data.equations?.[equation]?.rule : undefined;
    if (rule) rules.add(rule);
  }
  return `<span class="badge">${[...rules, text].map(escaped).join(" · ")}</span>`;
}

startTheme();
new Page(readData()).show();
