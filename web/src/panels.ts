// SPDX-License-Identifier: Apache-2.0
// The pages beside the explorer: totals, verification, profile.
import type { NodeError, PageData } from "./data.ts";
import { PLAIN, card, count, el, link, list, seconds, short } from "./dom.ts";
import { totalsOf } from "./totals.ts";
import { type Group, Tree } from "./tree.ts";

export interface PanelOptions {
  data: PageData;
  tree: Tree;
  onNode: (node: number) => void;
  onGroup: (group: Group) => void;
  onSource: (source: number) => void;
}

interface Column {
  title: string;
  text: (row: number) => string | Node;
  value?: (row: number) => number; // sorts, and draws a bar
}

// A table that is sorted by a click on the head of a column.
function sortable(columns: Column[], rows: number, first: number): HTMLElement {
  const body = el("tbody");
  const largest = columns.map((c) => Math.max(...range(rows).map((row) => c.value?.(row) ?? 0), 0));
  const order = (column: Column, up: boolean) => {
    const by = (row: number) => column.value?.(row) ?? 0;
    const text = (row: number) => {
      const cell = column.text(row);
      return typeof cell === "string" ? cell : (cell.textContent ?? "");
    };
    const sign = up ? 1 : -1;
    const sorted = range(rows).sort((a, b) =>
      column.value ? sign * (by(a) - by(b)) : sign * text(a).localeCompare(text(b)),
    );
    body.replaceChildren(...sorted.map(line));
  };
  const line = (row: number) =>
    el(
      "tr",
      {},
      ...columns.map((column, i) => {
        const cell = el("td", column.value ? { class: "right" } : {}, column.text(row));
        const share = column.value ? column.value(row) / (largest[i] || 1) : 0;
        if (share > 0) cell.style.setProperty("--share", `${(share * 100).toFixed(1)}%`);
        return cell;
      }),
    );
  const heads = columns.map((column) => {
    const button = el("button", { type: "button" }, column.title);
    let up = !column.value;
    button.addEventListener("click", () => {
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      order(column, up);
      up = !up;
    });
    const head = el("th", column.value ? { class: "right" } : {}, button);
    return head;
  });
  const start = columns[first];
  if (start) order(start, false);
  heads[first]?.setAttribute("aria-sort", "descending");
  return el(
    "div",
    { class: "scroll" },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body),
  );
}

function range(end: number): number[] {
  return Array.from({ length: end }, (_, i) => i);
}

// The groups of a model, the outer ones first; of long lists their parts.
function layers(tree: Tree): Group[] {
  return [...tree.allGroups].filter((group) => group.layer || group.owner >= 0);
}

export function totalsPanel(options: PanelOptions): HTMLElement {
  const { data, tree } = options;
  const all = totalsOf(data, range(data.nodes.length));
  const at = data.model.symbols.filter((symbol) => !symbol.startsWith("?")).map((s) => `${s} = 1`);
  const facts = el(
    "div",
    { class: "facts" },
    fact("nodes", all.nodes.toLocaleString("en")),
    fact("parameters", short(data.model.parameters)),
    fact("weights", short(data.model.bytes, "B")),
    fact(at.length ? `FLOP at ${at.join(", ")}` : "FLOP", short(all.flops)),
    fact("read and written", short(all.moved, "B")),
    fact("transposes", String(all.transposes)),
    fact("casts", String(all.casts)),
  );
  return el(
    "div",
    { class: "panel" },
    facts,
    card("By op", byOp(options)),
    card("By layer", byLayer(options)),
    ...(data.left_out?.length ? [card("Left out", list(data.left_out))] : []),
    ...remarksCard(data),
    el(
      "p",
      { class: "note" },
      "Bodies of loops and functions count once. ",
      tree.root.count === data.nodes.length ? "" : "",
    ),
  );
}

function remarksCard(data: PageData): HTMLElement[] {
  const found = new Map<string, number>();
  for (const equation of data.equations ?? []) {
    const where = data.sources[equation.source ?? 0];
    for (const remark of equation.remarks ?? []) {
      const text = where ? `${remark} (${where})` : remark;
      found.set(text, (found.get(text) ?? 0) + 1);
    }
  }
  const lines = [...found].map(([text, times]) => (times > 1 ? `${text} ×${times}` : text));
  return lines.length ? [card("Nearly raised", list(lines))] : [];
}

function byOp({ data }: PanelOptions): HTMLElement {
  const byName = new Map<string, number[]>();
  data.nodes.forEach((node, i) => {
    const nodes = byName.get(node.op);
    if (nodes) nodes.push(i);
    else byName.set(node.op, [i]);
  });
  const ops = [...byName.keys()];
  const totals = [...byName.values()].map((nodes) => totalsOf(data, nodes));
  return totalsTable(ops, totals, !!data.profile, "op");
}

function byLayer({ data, tree, onGroup }: PanelOptions): HTMLElement {
  const groups = layers(tree);
  if (groups.length === 0) return el("p", {}, "The model names no layers.");
  const totals = groups.map((group) => totalsOf(data, group.nodes()));
  const names = groups.map((group) => {
    const path = Tree.around(group).slice(1);
    const text = [...path, group].map((g) => g.label).join(".");
    return link(text, () => onGroup(group));
  });
  return totalsTable(names, totals, !!data.profile, "layer");
}

type Total = ReturnType<typeof totalsOf>;

function totalsTable(
  names: (string | HTMLElement)[],
  totals: Total[],
  withTime: boolean,
  what: string,
): HTMLElement {
  const number = (title: string, of: (t: Total) => number, text = (n: number) => short(n)) => ({
    title,
    text: (row: number) => {
      const found = of(totals[row] as Total);
      return found ? text(found) : "";
    },
    value: (row: number) => of(totals[row] as Total),
  });
  const columns: Column[] = [
    { title: what, text: (row) => names[row] ?? "" },
    number("nodes", (t) => t.nodes, String),
    number("parameters", (t) => t.parameters),
    number(
      "weights",
      (t) => t.bytes,
      (n) => short(n, "B"),
    ),
    number("FLOP", (t) => t.flops),
    number(
      "read + written",
      (t) => t.moved,
      (n) => short(n, "B"),
    ),
    number("transposes", (t) => t.transposes, String),
    number("casts", (t) => t.casts, String),
  ];
  if (withTime) columns.push(number("time", (t) => t.seconds, seconds));
  return sortable(columns, names.length, withTime ? columns.length - 1 : 4);
}

function fact(name: string, value: string): HTMLElement {
  return el("div", { class: "fact" }, el("strong", {}, value), el("span", {}, name));
}

export function verificationPanel(options: PanelOptions): HTMLElement {
  const { data } = options;
  const found = data.verification;
  if (!found) return el("div", { class: "panel" });
  const words: Record<string, string> = {
    same: "The model gives JAX's numbers.",
    unstable: "The model differs from JAX by no more than rounding does in JAX itself.",
    different: "The model gives other numbers than JAX.",
  };
  const good = found.verdict !== "different";
  const rows = found.checks.flatMap((check) => {
    const sizes = Object.entries(check.sizes)
      .map(([name, size]) => `${name} = ${size}`)
      .join(", ");
    if (check.skipped) return [el("tr", {}, el("td", {}, sizes), el("td", {}, check.skipped))];
    return check.outputs.map((output) =>
      el(
        "tr",
        {},
        el("td", {}, sizes || "fixed"),
        el("td", {}, output.name),
        el("td", {}, `${output.dtype}[${output.shape.join(",")}]`),
        el("td", { class: output.verdict === "different" ? "bad" : "good" }, output.verdict),
        el("td", { class: "right" }, output.largest_difference.toExponential(2)),
        el("td", { class: "right" }, Math.round(output.ulps).toLocaleString("en")),
        el("td", { class: "right" }, `${(output.share * 100).toFixed(1)} %`),
      ),
    );
  });
  const heads = [
    "sizes",
    "output",
    "type",
    "verdict",
    "largest difference",
    "ulps",
    "of what is allowed",
  ];
  const table = el(
    "div",
    PLAIN,
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, ...heads.map((head, i) => el("th", i > 3 ? { class: "right" } : {}, head))),
      ),
      el("tbody", {}, ...rows),
    ),
  );
  const place = found.place;
  return el(
    "div",
    { class: "panel" },
    card(
      "Against JAX",
      el("p", { class: `verdict ${good ? "good" : "bad"}` }, words[found.verdict] ?? found.verdict),
      table,
      ...(place
        ? [
            el("p", {}, `They part at ${place.source}: ${place.source_line}`),
            el("p", {}, `node ${place.node} (${place.op}), equation ${place.equation}`),
          ]
        : []),
      found.notes.length ? list(found.notes) : "",
    ),
    ...(data.errors?.length ? [card("Error by layer", errorTable(options, data.errors))] : []),
  );
}

// The largest error of the nodes of each layer, in the order of the model.
function errorTable(options: PanelOptions, errors: NodeError[]): HTMLElement {
  const { data, tree, onNode } = options;
  const index = new Map(data.nodes.map((node, i) => [node.name, i]));
  const byLayer = new Map<string, { worst: NodeError; nodes: number; first: number }>();
  for (const error of errors) {
    const node = index.get(error.node);
    if (node === undefined) continue;
    const leaf = tree.leafOfNode[node];
    const path = leaf
      ? Tree.around(leaf)
          .slice(1)
          .map((g) => g.label)
      : [];
    const layer = path.join(".") || "(no layer)";
    const known = byLayer.get(layer);
    if (!known) byLayer.set(layer, { worst: error, nodes: 1, first: node });
    else {
      known.nodes++;
      if (error.relative > known.worst.relative) known.worst = error;
    }
  }
  const rows = [...byLayer].sort((a, b) => a[1].first - b[1].first);
  const of = (row: number) => rows[row]?.[1] as { worst: NodeError; nodes: number; first: number };
  const columns: Column[] = [
    { title: "layer", text: (row) => rows[row]?.[0] ?? "" },
    { title: "in order", text: (row) => String(row + 1), value: (row) => -row },
    {
      title: "compared nodes",
      text: (row) => String(of(row).nodes),
      value: (row) => of(row).nodes,
    },
    {
      title: "largest relative error",
      text: (row) => of(row).worst.relative.toExponential(1),
      value: (row) => of(row).worst.relative,
    },
    {
      title: "ulps",
      text: (row) => Math.round(of(row).worst.ulps).toLocaleString("en"),
      value: (row) => of(row).worst.ulps,
    },
    {
      title: "node",
      text: (row) => link(of(row).worst.node, () => onNode(index.get(of(row).worst.node) ?? 0)),
    },
  ];
  const note = el(
    "p",
    { class: "note" },
    "Each node's results beside the equation that has the same numbers up to layout; nodes without such an equation are left out.",
  );
  return el("div", {}, sortable(columns, rows.length, 1), note);
}

export function profilePanel(options: PanelOptions): HTMLElement {
  const { data, onNode, onSource } = options;
  const profile = data.profile;
  if (!profile) return el("div", { class: "panel" });
  const sizes = Object.entries(profile.sizes)
    .map(([name, size]) => `${name} = ${size}`)
    .join(", ");
  const inNodes = Object.values(profile.nodes).reduce((a, b) => a + b, 0);
  const facts = el(
    "div",
    { class: "facts" },
    fact("a run in ONNX Runtime", seconds(profile.seconds)),
    ...(profile.jax === undefined ? [] : [fact("jax.jit", seconds(profile.jax))]),
    fact("in nodes", seconds(inNodes)),
    fact("runs", String(profile.runs)),
    ...(sizes ? [fact("sizes", sizes)] : []),
  );
  const timed = data.nodes.flatMap((node, i) => (profile.nodes[node.name] ? [i] : []));
  const timeOf = (row: number) => profile.nodes[data.nodes[timed[row] ?? 0]?.name ?? ""] ?? 0;
  const byNode = sortable(
    [
      {
        title: "node",
        text: (row) => link(data.nodes[timed[row] ?? 0]?.name ?? "", () => onNode(timed[row] ?? 0)),
      },
      { title: "op", text: (row) => data.nodes[timed[row] ?? 0]?.op ?? "" },
      { title: "time", text: (row) => seconds(timeOf(row)), value: timeOf },
      {
        title: "share",
        text: (row) => `${((100 * timeOf(row)) / (inNodes || 1)).toFixed(1)} %`,
        value: timeOf,
      },
    ],
    timed.length,
    2,
  );
  const lines = new Map<number, number>();
  for (const i of timed) {
    const source = data.nodes[i]?.source ?? 0;
    lines.set(source, (lines.get(source) ?? 0) + (profile.nodes[data.nodes[i]?.name ?? ""] ?? 0));
  }
  const perLine = [...lines];
  const byLine = sortable(
    [
      {
        title: "line",
        text: (row) => {
          const source = perLine[row]?.[0] ?? 0;
          const text = data.sources[source];
          return text ? link(text, () => onSource(source)) : "(none)";
        },
      },
      {
        title: "time",
        text: (row) => seconds(perLine[row]?.[1] ?? 0),
        value: (row) => perLine[row]?.[1] ?? 0,
      },
    ],
    perLine.length,
    1,
  );
  const elsewhere = profile.elsewhere.map(([name, op, time]) => `${seconds(time)}  ${op} ${name}`);
  return el(
    "div",
    { class: "panel" },
    facts,
    card("By source line", byLine),
    card("By op", byOp(options)),
    card("By layer", byLayer(options)),
    card(`By node (${count(timed.length, "node")})`, byNode),
    ...(elsewhere.length ? [card("Nodes that only the runtime has", list(elsewhere))] : []),
    el("p", { class: "note" }, profile.runtime),
  );
}
