// SPDX-License-Identifier: Apache-2.0
// A pane of text lines. Only those in view are elements, so that a program may have 100,000 lines.
import { el, escaped } from "./dom.ts";

export const ROW = 20; // pixels

export interface ListOptions {
  name: string;
  lines: { text: string; label: string }[];
  isLinked: (line: number) => boolean;
  paint: (text: string) => string; // HTML
  badge?: (line: number) => string; // HTML behind the line
  onChoose: (line: number) => void;
}

export class List {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly space: HTMLElement;
  private chosen = new Set<number>();
  private cursor = -1;
  private drawn = "";
  private started = false;
  // What the browser knows: asking it while things change makes it lay out everything at once.
  private top = 0;
  private height = 0;
  private waiting = false;

  constructor(private readonly options: ListOptions) {
    this.space = el("div", { class: "space" });
    const role = { role: "listbox", "aria-multiselectable": "true", "aria-label": options.name };
    this.scroller = el("div", { class: "lines", tabindex: "0", ...role }, this.space);
    this.element = this.scroller;
    const longest = options.lines.reduce((most, line) => Math.max(most, line.text.length), 0);
    this.space.style.height = `${options.lines.length * ROW + 12}px`;
    this.space.style.minWidth = `${Math.min(longest, 2000) + 10}ch`;
    this.scroller.addEventListener(
      "scroll",
      () => {
        this.top = this.scroller.scrollTop;
        this.draw();
      },
      { passive: true },
    );
    this.scroller.addEventListener("click", (event) => this.onClick(event));
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => {
      this.height = this.scroller.clientHeight;
      if (!this.started && this.scroller.clientHeight > 0) {
        this.started = true;
        this.start();
      }
      this.draw();
    }).observe(this.scroller);
  }

  get cursorLine(): number {
    return this.cursor;
  }

  // Marks lines, and shows the first of them if none is in view.
  mark(lines: Set<number>, cursor = -1): void {
    this.chosen = lines;
    this.cursor = cursor;
    const first = cursor >= 0 ? cursor : Math.min(...lines);
    if (lines.size > 0 || cursor >= 0) this.reveal(first, [...lines]);
    this.draw(true);
  }

  // The next marked line below or above what is in view.
  step(direction: 1 | -1): void {
    const sorted = [...this.chosen].sort((a, b) => a - b);
    const middle = (this.top + this.height / 2) / ROW;
    const next =
      direction > 0
        ? sorted.find((line) => line > middle + 1)
        : sorted.findLast((line) => line < middle - 2);
    const to = next ?? (direction > 0 ? sorted[0] : sorted.at(-1));
    if (to !== undefined) this.center(to);
  }

  private reveal(line: number, lines: number[]): void {
    const top = this.top / ROW;
    const bottom = top + this.height / ROW - 1;
    const inView = (n: number) => n >= top && n <= bottom - 1;
    if (this.cursor >= 0 ? inView(line) : lines.some(inView)) return;
    this.center(line);
  }

  private center(line: number): void {
    this.scrollTo(line * ROW - this.height / 2 + ROW);
  }

  // The first line that anything belongs to; before it stand licences, imports and weights.
  start(): void {
    const first = this.options.lines.findIndex((_, i) => this.options.isLinked(i));
    if (first * ROW > this.height / 2) this.scrollTo((first - 3) * ROW);
  }

  private scrollTo(top: number): void {
    const end = this.options.lines.length * ROW + 12 - this.height;
    this.top = Math.max(0, Math.min(top, end));
    this.scroller.scrollTo({ top: this.top, left: 0 });
  }

  draw(force = false): void {
    if (force) this.drawn = "";
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  private render(): void {
    if (this.height === 0) return;
    const first = Math.max(0, Math.floor(this.top / ROW) - 10);
    const last = Math.min(this.options.lines.length, first + Math.ceil(this.height / ROW) + 20);
    const key = `${first}-${last}`;
    if (key === this.drawn) return;
    this.drawn = key;
    let html = "";
    for (let i = first; i < last; i++) html += this.row(i);
    this.space.innerHTML = html;
    const isThere = this.cursor >= first && this.cursor < last;
    if (isThere) this.scroller.setAttribute("aria-activedescendant", this.idOf(this.cursor));
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private idOf(line: number): string {
    return `${this.options.name}-${line}`;
  }

  private row(i: number): string {
    const { lines, isLinked, paint, badge, name } = this.options;
    const line = lines[i];
    if (!line) return "";
    const classes = ["line"];
    if (isLinked(i)) classes.push("linked");
    if (this.chosen.has(i)) classes.push("chosen");
    if (i === this.cursor) classes.push("cursor");
    if (line.label === "" && name === "Source") classes.push("file");
    const top = `style="top:${i * ROW}px"`;
    const label = `<span class="number">${escaped(line.label)}</span>`;
    const place = `aria-posinset="${i + 1}" aria-setsize="${lines.length}"`;
    const selected = `role="option" id="${this.idOf(i)}" aria-selected="${this.chosen.has(i)}" ${place}`;
    const text = `<code>${paint(line.text)}</code>${badge?.(i) ?? ""}`;
    return `<div class="${classes.join(" ")}" data-line="${i}" ${selected} ${top}>${label}${text}</div>`;
  }

  private onClick(event: MouseEvent): void {
    const row = (event.target as Element).closest<HTMLElement>("[data-line]");
    if (row && getSelection()?.isCollapsed !== false)
      this.options.onChoose(Number(row.dataset.line));
  }

  private onKey(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const end = this.options.lines.length;
    let next = this.cursor < 0 ? this.firstInView() - step : this.cursor;
    do next += step;
    while (next >= 0 && next < end && !this.options.isLinked(next));
    if (next >= 0 && next < end) this.options.onChoose(next);
  }

  private firstInView(): number {
    return Math.max(0, Math.floor(this.top / ROW));
  }
}
