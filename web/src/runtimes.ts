// SPDX-License-Identifier: Apache-2.0
// The page that says where the model runs: a card for each runtime.
import type { RuntimeData } from "./data.ts";
import { PLAIN, card, el, link, list } from "./dom.ts";
import type { PanelOptions } from "./panels.ts";

export function runtimesPanel({ data, onNode }: PanelOptions): HTMLElement {
  const nodeByName = new Map(data.nodes.map((node, i) => [node.name, i]));
  // "node 'Max_1'" as a link to it.
  const place = (where: string): string | Node => {
    const name = /node '(.*)'/.exec(where)?.[1] ?? "";
    const node = nodeByName.get(name);
    return node === undefined ? where : link(name, () => onNode(node));
  };
  const cards = data.runtimes.map((runtime) => runtimeCard(runtime, place));
  return el("div", { class: "panel" }, ...cards);
}

function runtimeCard(runtime: RuntimeData, place: (where: string) => string | Node): HTMLElement {
  const { name, needs, versions, notes, advice } = runtime;
  const cells = versions.map(({ version, misfits }) => {
    const good = misfits.length === 0;
    const title = good ? "has kernels for every node" : (misfits[0]?.join(" at ") ?? "");
    const sign = el("span", {}, good ? "✓" : "✗");
    return el("div", { class: `version ${good ? "good" : "bad"}`, title }, version, sign);
  });
  const verdict = needs
    ? `Every version from ${needs} on has kernels for all nodes.`
    : "The newest version that jaxport knows does not load this model.";
  return card(
    name,
    el("p", { class: needs ? "verdict good" : "verdict bad" }, verdict),
    el("div", { class: "versions" }, ...cells),
    advice ? el("p", { class: "advice" }, `What to change: ${advice}`) : "",
    notes.length ? list(notes) : "",
    inTheWay(runtime, place) ?? "",
  );
}

// A row for each thing that keeps some version from loading the model.
function inTheWay(
  { versions }: RuntimeData,
  place: (where: string) => string | Node,
): HTMLElement | undefined {
  const problems = new Map<string, { what: string; where: string; versions: string[] }>();
  for (const { version, misfits } of versions) {
    for (const [what, where] of misfits) {
      const key = `${what}\n${where}`;
      const known = problems.get(key) ?? { what, where, versions: [] };
      known.versions.push(version);
      problems.set(key, known);
    }
  }
  if (problems.size === 0) return undefined;
  const rows = [...problems.values()].map(({ what, where, versions: in_ }) => {
    const range = in_.length > 1 ? `${in_[0]} to ${in_.at(-1)}` : (in_[0] ?? "");
    return el("tr", {}, el("td", {}, range), el("td", {}, what), el("td", {}, place(where)));
  });
  const heads = ["versions", "what is in the way", "where"].map((title) => el("th", {}, title));
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
  return el("div", PLAIN, table);
}
