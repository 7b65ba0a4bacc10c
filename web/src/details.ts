// SPDX-License-Identifier: Apache-2.0
// What is known of the node or the layer that was chosen.
import { INITIALIZER, type NodeData, type PageData } from "./data.ts";
import { count, el, link, seconds, short } from "./dom.ts";
import type { Links } from "./links.ts";
import { totalsOf } from "./totals.ts";
import type { Group, Tree } from "./tree.ts";

const MADE: Record<string, string> = {
  lower: "lowering",
  target: "the target: no kernel for what stood here",
  passes: "a pass over the finished graph",
};

type Row = [string, string | Node | undefined | false];

export interface DetailsOptions {
  data: PageData;
  tree: Tree;
  links: Links;
  onNode: (node: number) => void;
  onInside: (group: Group) => void;
  onLine: (line: number) => void;
  onClose: () => void;
}

export class Details {
  readonly element = el("aside", { class: "details", "aria-live": "polite" });
  private readonly data: PageData;
  private readonly tree: Tree;
  private readonly links: Links;
  private readonly errors: Map<string, { relative: number }>; // by the name of the node

  constructor(private readonly options: DetailsOptions) {
    this.data = options.data;
    this.tree = options.tree;
    this.links = options.links;
    this.errors = new Map((this.data.errors ?? []).map((error) => [error.node, error]));
    this.clear();
  }

  clear(): void {
    this.element.replaceChildren();
    this.element.hidden = true;
  }

  private fill(title: string, subtitle: string, ...parts: (Node | undefined)[]): void {
    const close = el("button", { type: "button", class: "close", "aria-label": "close" }, "×");
    close.addEventListener("click", () => this.options.onClose());
    const head = el("header", {}, el("h3", {}, title), el("p", {}, subtitle), close);
    this.element.replaceChildren(head, ...parts.filter((part) => part !== undefined));
    this.element.hidden = false;
  }

  showNode(index: number): void {
    const node = this.data.nodes[index];
    if (!node) return;
    const time = this.data.profile?.nodes[node.name];
    const error = this.errors.get(node.name);
    const rows: Row[] = [
      ["layer", node.layer ?? node.scope],
      ["source", this.sourceOf(node)],
      ["rule", this.ruleOf(index)],
      ["calls", this.callOf(node)],
      ["made by", node.made && this.madeBy(index, MADE[node.made] ?? "")],
      ["operations", node.flops ? `${short(node.flops)} FLOP` : undefined],
      ["reads + writes", node.moved ? short(node.moved, "B") : undefined],
      ["time", time === undefined ? undefined : seconds(time)],
      ["error", error && `${error.relative.toExponential(1)} of the largest number`],
      ...Object.entries(node.attrs ?? {}).map(([name, value]): Row => [name, value]),
    ];
    this.fill(
      node.op,
      node.name,
      table(rows),
      this.values("in", node.in, true),
      this.values("out", node.out, false),
      this.remarks(index),
      this.equations(index),
    );
  }

  showGroup(group: Group): void {
    const totals = totalsOf(this.data, group.nodes());
    const calls = this.tree.callsOf(group).map((node) => this.linkTo(node, "name"));
    const rows: Row[] = [
      ["called by", calls.length ? el("span", { class: "links" }, ...calls.flat()) : undefined],
      ["nodes", totals.nodes.toLocaleString("en")],
      ["parameters", short(totals.parameters)],
      ["weights", short(totals.bytes, "B")],
      ["operations", `${short(totals.flops)} FLOP`],
      ["transposes", String(totals.transposes)],
      ["casts", String(totals.casts)],
      ["time", totals.seconds ? seconds(totals.seconds) : undefined],
    ];
    const ops = [...totals.ops].sort((a, b) => b[1] - a[1]);
    const list = ops.map(([op, times]) => `${times} ${op}`).join(", ");
    this.fill(
      group.label,
      group.layer ? "layer" : calls.length ? "function" : "",
      table(rows),
      el("p", {}, list),
    );
  }

  private sourceOf(node: NodeData): string | Node | undefined {
    const text = this.data.sources[node.source ?? 0];
    const line = this.links.sourceLineOf(node.source);
    if (!text || line === undefined) return text;
    return link(text, () => this.options.onLine(line));
  }

  // A node that calls a function leads to what is in it.
  private callOf(node: NodeData): Node | undefined {
    const group = this.tree.functionOf(node);
    return group && link(`open the ${group.label}`, () => this.options.onInside(group));
  }

  private ruleOf(index: number): string | undefined {
    const number = this.data.nodes[index]?.equation;
    return number ? this.data.equations?.[number]?.rule : undefined;
  }

  private madeBy(index: number, stage: string): string {
    const number = this.data.nodes[index]?.equation;
    const primitive = number && this.data.equations?.[number]?.primitive;
    return primitive ? `${stage} of ${primitive}` : stage;
  }

  // Operands and results with their types, and where they come from or go to.
  private values(title: string, ids: number[], isInput: boolean): Node {
    const rows = ids.flatMap((id): Row[] => {
      const value = this.data.values[id];
      if (!value) return [];
      const [name, type, kind] = value;
      const others = isInput ? [this.tree.producer.get(id)] : (this.tree.consumers.get(id) ?? []);
      const links = others.flatMap((other) => this.linkTo(other));
      const about = kind === INITIALIZER ? [el("em", {}, "weight")] : links;
      return [[name, el("span", {}, el("code", {}, type), " ", ...about)]];
    });
    return el("section", {}, el("h4", {}, title), table(rows));
  }

  private linkTo(node: number | undefined, text: "op" | "name" = "op"): Node[] {
    const to = node === undefined ? undefined : this.data.nodes[node];
    if (!to || node === undefined) return [];
    const button = link(to[text] || to.op, () => this.options.onNode(node));
    button.title = to.name;
    return [button];
  }

  // Why the node, or one beside it, did not become a part of a larger one.
  private remarks(index: number): Node | undefined {
    const nodes = [index, ...this.tree.neighbours(index)];
    const found = new Set<string>();
    for (const node of nodes) {
      for (const equation of this.links.equationsOfNode(node)) {
        for (const remark of this.data.equations?.[equation]?.remarks ?? []) found.add(remark);
      }
    }
    if (found.size === 0) return undefined;
    const items = [...found].map((remark) => el("li", {}, remark));
    return el("section", { class: "remarks" }, el("h4", {}, "not fused"), el("ul", {}, ...items));
  }

  private equations(index: number): Node | undefined {
    const equations = this.links.equationsOfNode(index);
    if (equations.length === 0) return undefined;
    const names = equations.map((e) => this.data.equations?.[e]?.primitive ?? "");
    return el(
      "section",
      {},
      el("h4", {}, `stands for ${count(equations.length, "equation")}`),
      el("p", { class: "names" }, names.join(" → ")),
    );
  }
}

function table(rows: Row[]): HTMLElement {
  const list = el("dl");
  for (const [name, value] of rows) {
    if (value) list.append(el("dt", {}, name), el("dd", {}, value));
  }
  return list;
}
