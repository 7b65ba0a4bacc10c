// SPDX-License-Identifier: Apache-2.0
// The drawn graph: pan, zoom, open and close groups. What is out of view is no element.
import { count, el, escaped } from "./dom.ts";
import { type Box, HEADER, type Layout, Layouts, type Line } from "./layout.ts";
import { familyOf } from "./paint.ts";
import { type Group, type Item, keyOf, Tree } from "./tree.ts";

export interface GraphOptions {
  tree: Tree;
  heat: (nodes: Iterable<number>) => number | undefined; // share of the time, where it is known
  onNode: (node: number) => void;
  onGroup: (group: Group) => void;
  onNothing: () => void;
}

const LEAST = 0.04;
const MOST = 2.5;
const REST = 150; // milliseconds without a movement, after which the graph is drawn anew
const AROUND = 0.5; // of the view on each side, that is drawn beside it
const TINY = 26; // pixels on the screen, below which an open group is drawn without its inside

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export class GraphView {
  readonly element: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly layouts = new Layouts();
  private x = 0;
  private y = 0;
  private scale = 1;
  private width = 0; // of the element, as the browser last said
  private height = 0;
  private chosen = new Set<number>();
  private current: string | undefined; // the key of the item that was clicked
  private waiting = false;
  // What the svg holds; while the graph moves, the browser moves that picture.
  private drawn = { x: 0, y: 0, scale: 1, area: { x: 0, y: 0, width: 0, height: 0 } };
  private resting: ReturnType<typeof setTimeout> | undefined;
  private started = false;
  private pending: number[] = []; // what to bring into view once there is one

  constructor(private readonly options: GraphOptions) {
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("aria-hidden", "true"); // the card of a node says what it shows
    const button = (label: string, text: string, act: () => void) => {
      const made = el("button", { type: "button", title: label, "aria-label": label }, text);
      made.addEventListener("click", act);
      return made;
    };
    const controls = el(
      "div",
      { class: "controls" },
      button("zoom in (+)", "+", () => this.zoom(1.3)),
      button("zoom out (-)", "−", () => this.zoom(1 / 1.3)),
      button("fit the graph (0)", "⤢", () => this.fit()),
      button("open one level (e)", "⊞", () => this.openLevel()),
      button("close all groups (c)", "⊟", () => this.closeAll()),
    );
    this.element = el("div", {
      class: "graph",
      tabindex: "0",
      role: "application",
      "aria-label": "Graph: arrows walk the nodes, Enter opens a layer",
    });
    this.element.append(this.svg, controls);
    this.listen();
  }

  // --- what is shown

  mark(nodes: Set<number>, current?: Item): void {
    this.chosen = nodes;
    this.current = current && keyOf(current);
    this.draw();
  }

  // Brings nodes into view; opens the groups around them when there are few.
  reveal(nodes: number[], openAtMost = 4): void {
    const { tree } = this.options;
    if (this.width === 0) {
      this.pending = nodes; // on a phone another pane is shown
      return;
    }
    if (nodes.length <= openAtMost) {
      for (const node of nodes) {
        const leaf = tree.leafOfNode[node];
        if (leaf) for (const group of Tree.around(leaf)) this.setOpen(group, true);
      }
    }
    const items = new Set(nodes.map((node) => tree.visible(node)).filter((item) => !!item));
    const boxes = [...items].map((item) => this.place(item)).filter((box) => !!box);
    if (boxes.length > 0) this.bring(boxes);
    this.draw();
  }

  toggle(group: Group): void {
    const before = this.place(group);
    this.setOpen(group, !group.expanded);
    const after = this.place(group);
    if (before && after) {
      // What was clicked stays where it is.
      this.x += (before.x - after.x) * this.scale;
      this.y += (before.y - after.y) * this.scale;
    }
    this.draw();
  }

  closeAll(): void {
    for (const group of this.options.tree.allGroups) this.setOpen(group, false);
    this.fit();
  }

  // Opens the closed groups in view; of large models only as many as stay readable.
  openLevel(): void {
    const MANY = 1500;
    const { tree } = this.options;
    const closed = [...tree.allGroups].filter(
      (g) => !g.expanded && Tree.around(g).every((outer) => outer.expanded),
    );
    let shown = 0;
    for (const group of closed) {
      shown += group.items.length;
      if (shown > MANY) break;
      this.setOpen(group, true);
    }
    this.fit();
  }

  fit(): void {
    const whole = this.layouts.of(this.options.tree.root);
    const { width: clientWidth, height: clientHeight } = this;
    if (clientWidth === 0) return;
    const MARGIN = 16;
    const scale = Math.min(
      (clientWidth - 2 * MARGIN) / whole.width,
      (clientHeight - 2 * MARGIN) / whole.height,
      1,
    );
    this.scale = Math.max(scale, LEAST);
    this.x = (clientWidth - whole.width * this.scale) / 2;
    this.y = Math.max(MARGIN, (clientHeight - whole.height * this.scale) / 2);
    this.draw();
  }

  // The first look: as large as can be read, from the top.
  start(): void {
    const READABLE = 0.75;
    this.fit();
    if (this.scale >= READABLE || this.width === 0) return;
    const whole = this.layouts.of(this.options.tree.root);
    this.scale = READABLE;
    this.x = (this.width - whole.width * this.scale) / 2;
    this.y = 12;
    this.draw();
  }

  private setOpen(group: Group, open: boolean): void {
    if (group.expanded === open || !group.parent) return;
    group.expanded = open;
    this.layouts.forget(group);
  }

  // --- where things are

  // The place of an item in the whole picture.
  private place(item: Item): Rect | undefined {
    let x = 0;
    let y = 0;
    let found: Box | undefined;
    const path: Item[] = [...Tree.around(item), item];
    for (let i = 0; i + 1 < path.length; i++) {
      const group = path[i] as Group;
      if (!group.expanded) return undefined;
      found = this.layouts.of(group).boxes.find((box) => box.item === path[i + 1]);
      if (!found) return undefined;
      x += found.x;
      y += found.y;
    }
    return found && { x, y, width: found.width, height: found.height };
  }

  private bring(boxes: Rect[]): void {
    const left = Math.min(...boxes.map((b) => b.x));
    const top = Math.min(...boxes.map((b) => b.y));
    const right = Math.max(...boxes.map((b) => b.x + b.width));
    const bottom = Math.max(...boxes.map((b) => b.y + b.height));
    const { width: clientWidth, height: clientHeight } = this;
    const MARGIN = 60;
    const fits = Math.min(
      clientWidth / (right - left + 2 * MARGIN),
      clientHeight / (bottom - top + 2 * MARGIN),
    );
    const READABLE = 0.7;
    if (fits < READABLE && boxes[0]) {
      this.scale = Math.max(this.scale, READABLE);
      this.center(boxes[0]);
      return;
    }
    const inView =
      left * this.scale + this.x > 0 &&
      top * this.scale + this.y > 0 &&
      right * this.scale + this.x < clientWidth &&
      bottom * this.scale + this.y < clientHeight;
    if (inView && this.scale >= READABLE) return;
    this.scale = Math.min(Math.max(this.scale, READABLE), Math.max(fits, READABLE), 1.2);
    this.center({ x: left, y: top, width: right - left, height: bottom - top });
  }

  private center(rect: Rect): void {
    const { width: clientWidth, height: clientHeight } = this;
    this.x = clientWidth / 2 - (rect.x + rect.width / 2) * this.scale;
    this.y = clientHeight / 2 - (rect.y + rect.height / 2) * this.scale;
  }

  zoom(factor: number, atX = this.width / 2, atY = this.height / 2): void {
    const next = Math.min(Math.max(this.scale * factor, LEAST), MOST);
    this.x = atX - ((atX - this.x) * next) / this.scale;
    this.y = atY - ((atY - this.y) * next) / this.scale;
    this.scale = next;
    this.move();
  }

  private pan(dx: number, dy: number): void {
    this.x += dx;
    this.y += dy;
    this.move();
  }

  // --- drawing

  draw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  private render(): void {
    if (this.width === 0) return;
    clearTimeout(this.resting);
    this.resting = undefined;
    const area = this.seen(AROUND);
    this.drawn = { x: this.x, y: this.y, scale: this.scale, area };
    const { root } = this.options.tree;
    const inside = this.inside(this.layouts.of(root), 0, 0, area);
    this.svg.innerHTML = `${MARKERS}<g transform="translate(${this.x} ${this.y}) scale(${this.scale})">${inside}</g>`;
    this.svg.style.transform = "";
  }

  // Thousands of elements take longer than a frame; a picture that moves takes none.
  private move(): void {
    const { x, y, scale, area } = this.drawn;
    const by = this.scale / scale;
    this.svg.style.transform = `translate(${this.x - x * by}px, ${this.y - y * by}px) scale(${by})`;
    if (covers(area, this.seen(0))) clearTimeout(this.resting);
    else if (this.resting !== undefined) return; // a long movement is drawn while it lasts
    this.resting = setTimeout(() => this.draw(), REST);
  }

  // The part of the picture in view, and so much of it around that.
  private seen(around: number): Rect {
    const width = this.width / this.scale;
    const height = this.height / this.scale;
    return {
      x: -this.x / this.scale - around * width,
      y: -this.y / this.scale - around * height,
      width: width * (1 + 2 * around),
      height: height * (1 + 2 * around),
    };
  }

  private inside(layout: Layout, x: number, y: number, seen: Rect): string {
    let html = "";
    for (const line of layout.lines) html += this.line(line, x, y, seen);
    for (const box of layout.boxes) {
      const at = { x: x + box.x, y: y + box.y, width: box.width, height: box.height };
      if (overlap(at, seen)) html += this.box(box, at, seen);
    }
    return html;
  }

  private line(line: Line, x: number, y: number, seen: Rect): string {
    const points = line.points.map((p) => ({ x: p.x + x, y: p.y + y }));
    const first = points[0];
    if (!first) return "";
    const around = boundsOf(points);
    if (!overlap(around, seen)) return "";
    const isCurrent =
      this.current !== undefined &&
      (keyOf(line.edge.from) === this.current || keyOf(line.edge.to) === this.current);
    return `<path class="edge${isCurrent ? " current" : ""}" d="${curve(points)}"/>`;
  }

  private box(box: Box, at: Rect, seen: Rect): string {
    const { item } = box;
    const place = `x="${at.x}" y="${at.y}" width="${at.width}" height="${at.height}"`;
    if (item.kind === "port") {
      const name = escaped(this.options.tree.data.values[item.value]?.[0] ?? "");
      return `<rect class="port" rx="4" ${place}><title>${name}</title></rect>`;
    }
    if (item.kind === "group") return this.group(item, box, at, place, seen);
    const node = item.kind === "node" ? this.options.tree.data.nodes[item.index] : undefined;
    const family = node ? familyOf(node.op) : item.kind;
    const classes = `box ${family}${this.state(item)}`;
    const heat = item.kind === "node" ? this.heat([item.index], at) : "";
    const title = escaped(node?.name || item.label);
    return `<g class="${classes}" data-key="${escaped(keyOf(item))}"><title>${title}</title><rect rx="7" ${place}/>${heat}${this.texts(item.label, item.detail, at)}</g>`;
  }

  private group(group: Group, box: Box, at: Rect, place: string, seen: Rect): string {
    const isOpen = !!box.inside && at.width * this.scale > TINY && at.height * this.scale > TINY;
    const marked = isOpen ? 0 : [...group.nodes()].filter((n) => this.chosen.has(n)).length;
    const kind = group.owner >= 0 ? "body" : group.layer ? "layer" : "part";
    const classes = `group ${kind} ${isOpen ? "open" : "closed"}${this.state(group)}${marked ? " chosen" : ""}`;
    const title = `${escaped(group.id)}: ${count(group.count, "node")}`;
    const size = this.scale > 0.3 ? 13 : Math.min(13 / this.scale / 3, 40);
    const text = `<text class="name" x="${at.x + 30}" y="${at.y + 24 - (isOpen ? 4 : -1)}" style="font-size:${size}px">${escaped(group.label)}</text>`;
    const sign = `<g class="sign" data-toggle="1"><rect class="hit" x="${at.x}" y="${at.y}" width="28" height="${isOpen ? HEADER : at.height}"/><text x="${at.x + 11}" y="${at.y + (isOpen ? 20 : 25)}">${isOpen ? "−" : "+"}</text></g>`;
    const badge = marked
      ? `<text class="badge" x="${at.x + at.width - 10}" y="${at.y + 25}">${marked} of ${group.count}</text>`
      : `<text class="count" x="${at.x + at.width - 10}" y="${at.y + (isOpen ? 20 : 25)}">${count(group.count, "node")}</text>`;
    const heat = isOpen ? "" : this.heat(group.nodes(), at);
    const inside = isOpen && box.inside ? this.inside(box.inside, at.x, at.y, seen) : "";
    return `<g class="${classes}" data-key="${escaped(keyOf(group))}"><title>${title}</title><rect rx="9" ${place}/>${heat}${this.scale > 0.12 ? text + badge + sign : ""}</g>${inside}`;
  }

  // A bar below a box: its share of the time.
  private heat(nodes: Iterable<number>, at: Rect): string {
    const share = this.options.heat(nodes);
    if (share === undefined) return "";
    const width = Math.max((at.width - 12) * Math.min(share, 1), 1);
    return `<rect class="heat" x="${at.x + 6}" y="${at.y + at.height - 5}" width="${width}" height="3" rx="1.5"/>`;
  }

  private texts(label: string, detail: string, at: Rect): string {
    if (this.scale < 0.25) return "";
    const x = at.x + at.width / 2;
    const fits = Math.floor(at.width / 6.1);
    const cut = detail.length > fits ? `${detail.slice(0, fits - 1)}…` : detail;
    return `<text class="op" x="${x}" y="${at.y + 19}">${escaped(label)}</text><text class="type" x="${x}" y="${at.y + 34}">${escaped(cut)}</text>`;
  }

  private state(item: Item): string {
    const isChosen = item.kind === "node" && this.chosen.has(item.index);
    return `${isChosen ? " chosen" : ""}${keyOf(item) === this.current ? " current" : ""}`;
  }

  // --- mouse, fingers and keys

  private listen(): void {
    this.element.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.dragging();
    new ResizeObserver(() => {
      this.width = this.element.clientWidth;
      this.height = this.element.clientHeight;
      if (!this.started && this.width > 0) {
        this.started = true;
        this.start();
      }
      if (this.width > 0 && this.pending.length > 0) this.reveal(this.pending.splice(0));
      this.draw();
    }).observe(this.element);
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    const rect = this.element.getBoundingClientRect();
    const pixels = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
    if (event.shiftKey) this.pan(-pixels, 0);
    else this.zoom(Math.exp(-pixels / 500), event.clientX - rect.left, event.clientY - rect.top);
  }

  private dragging(): void {
    const fingers = new Map<number, { x: number; y: number }>();
    let moved = 0;
    this.element.addEventListener("pointerdown", (event) => {
      if ((event.target as Element).closest(".controls")) return;
      fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (fingers.size === 1) moved = 0;
    });
    window.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const now = { x: event.clientX, y: event.clientY };
      moved += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
      if (fingers.size === 1 && moved > 4) this.pan(now.x - last.x, now.y - last.y);
      else if (fingers.size === 2) this.pinch(fingers, event.pointerId, now);
      fingers.set(event.pointerId, now);
    });
    for (const kind of ["pointerup", "pointercancel"] as const) {
      window.addEventListener(kind, (event) => {
        const wasHere = fingers.delete(event.pointerId);
        if (wasHere && kind === "pointerup" && moved <= 4) this.onClick(event.target as Element);
      });
    }
    this.svg.addEventListener("dblclick", (event) => {
      const group = this.groupAt(event.target as Element);
      if (group) this.toggle(group);
    });
  }

  private pinch(
    fingers: Map<number, { x: number; y: number }>,
    moving: number,
    now: { x: number; y: number },
  ): void {
    const other = [...fingers].find(([id]) => id !== moving)?.[1];
    const before = fingers.get(moving);
    if (!other || !before) return;
    const rect = this.element.getBoundingClientRect();
    const apart = (p: { x: number; y: number }) => Math.hypot(p.x - other.x, p.y - other.y);
    this.zoom(apart(now) / Math.max(apart(before), 1), other.x - rect.left, other.y - rect.top);
  }

  private itemAt(target: Element): string | undefined {
    return target.closest<SVGElement>("[data-key]")?.dataset.key;
  }

  private groupAt(target: Element): Group | undefined {
    const key = this.itemAt(target);
    return key?.startsWith("g") ? this.options.tree.groupById(key.slice(1)) : undefined;
  }

  private onClick(target: Element): void {
    this.element.focus({ preventScroll: true });
    const group = this.groupAt(target);
    if (group && target.closest("[data-toggle]")) return this.toggle(group);
    if (group) return this.options.onGroup(group);
    const key = this.itemAt(target);
    if (key?.startsWith("node")) return this.options.onNode(Number(key.slice(4)));
    if (!key) this.options.onNothing();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      "0": () => this.fit(),
      c: () => this.closeAll(),
      e: () => this.openLevel(),
      Enter: () => this.toggleCurrent(),
      ArrowDown: () => this.walk(1),
      ArrowUp: () => this.walk(-1),
      ArrowRight: () => this.aside(1),
      ArrowLeft: () => this.aside(-1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private toggleCurrent(): void {
    if (this.current?.startsWith("g")) {
      const group = this.options.tree.groupById(this.current.slice(1));
      if (group) this.toggle(group);
    }
  }

  // To the items that follow or precede in what is drawn.
  private walk(direction: 1 | -1): void {
    const group = this.currentGroup();
    for (const edge of group.edges.values()) {
      const [from, to] = direction > 0 ? [edge.from, edge.to] : [edge.to, edge.from];
      if (keyOf(from) === this.current && to.kind !== "port") return this.choose(to);
    }
    const first = group.items.find((item) => item.kind !== "input");
    if (this.current === undefined && first) this.choose(first);
  }

  private aside(direction: 1 | -1): void {
    const items = this.currentGroup().items;
    const at = items.findIndex((item) => keyOf(item) === this.current);
    const next = items[at + direction];
    if (next) this.choose(next);
  }

  private choose(item: Item): void {
    if (item.kind === "group") this.options.onGroup(item);
    else if (item.kind === "node") this.options.onNode(item.index);
    else this.mark(this.chosen, item);
    const place = this.place(item);
    if (place) this.bring([place]);
  }

  private currentGroup(): Group {
    const { tree } = this.options;
    for (const group of [tree.root, ...tree.allGroups]) {
      if (group.items.some((item) => keyOf(item) === this.current)) return group;
    }
    return tree.root;
  }
}

const MARKERS = `<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>`;

function overlap(a: Rect, b: Rect): boolean {
  return (
    a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height
  );
}

function covers(outer: Rect, inner: Rect): boolean {
  return (
    outer.x <= inner.x &&
    outer.y <= inner.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

function boundsOf(points: { x: number; y: number }[]): Rect {
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  const x = Math.min(...xs);
  const y = Math.min(...ys);
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

// A smooth curve through the points of dagre.
function curve(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1];
    if (!next) path += `L${point.x} ${point.y}`;
    else path += `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  return path;
}
