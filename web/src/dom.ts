// SPDX-License-Identifier: Apache-2.0
// Elements and texts.

type Child = Node | string | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child) element.append(child);
  return element;
}

export function link(text: string, act: () => void): HTMLElement {
  const button = el("button", { type: "button", class: "link" }, text);
  button.addEventListener("click", act);
  return button;
}

export function card(title: string, ...children: (Node | string)[]): HTMLElement {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}

export function list(lines: string[]): HTMLElement {
  return el("ul", {}, ...lines.map((line) => el("li", {}, line)));
}

export function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const UNITS = ["", "k", "M", "G", "T", "P"];

// 12,345,678 as "12.3 M".
export function short(number: number, unit = ""): string {
  let power = 0;
  let rest = number;
  while (Math.abs(rest) >= 1000 && power < UNITS.length - 1) {
    rest /= 1000;
    power++;
  }
  const digits = power === 0 && Number.isInteger(rest) ? 0 : rest < 10 ? 2 : rest < 100 ? 1 : 0;
  const prefix = `${UNITS[power]}${unit}`;
  return `${rest.toFixed(digits)}${prefix ? ` ${prefix}` : ""}`;
}

export function seconds(value: number): string {
  if (value >= 1) return `${value.toFixed(2)} s`;
  if (value >= 1e-3) return `${(value * 1e3).toFixed(2)} ms`;
  return `${(value * 1e6).toFixed(1)} µs`;
}

export function count(number: number, what: string): string {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

// What surrounds a table without links or buttons: it must have the focus to be moved by keys.
export const PLAIN = { class: "scroll", tabindex: "0" };
