// SPDX-License-Identifier: Apache-2.0
// The nodes of a model as a tree of layers, bodies and functions, with the edges between them.
import { INITIALIZER, type NodeData, type PageData } from "./data.ts";

export interface Leaf {
  kind: "node" | "input" | "output";
  index: number; // of the node, or of the value
  label: string;
  detail: string;
  parent: Group;
}

export interface Edge {
  from: Item | Port;
  to: Item | Port;
  values: Set<number>;
}

// Where values enter or leave a group.
export interface Port {
  kind: "port";
  isInput: boolean;
  value: number;
}

export class Group {
  readonly kind = "group";
  readonly items: Item[] = [];
  readonly edges = new Map<string, Edge>();
  readonly ports = new Map<string, Port>();
  expanded = false;
  first = Number.POSITIVE_INFINITY; // the first node in it
  count = 0; // nodes
  layer = true; // false: a body, a function, or a part of a long list

  constructor(
    readonly id: string,
    public label: string,
    public parent: Group | undefined,
    readonly owner = -1, // the node whose body it is
  ) {}

  *nodes(): Generator<number> {
    if (this.owner >= 0) yield this.owner;
    for (const item of this.items) {
      if (item.kind === "group") yield* item.nodes();
      else if (item.kind === "node") yield item.index;
    }
  }
}

export type Item = Leaf | Group;

const MOST_ITEMS = 90; // of a group; more are cut into parts, which keeps the layout quick
const PART = 30;

// "blocks.3.attn" as ["blocks", "3", "attn"]; what a transformation adds to a scope is no layer.
export function pathOf(layer: string): string[] {
  return /[(),>]/.test(layer) ? [] : layer.split(/[./]/).filter((part) => part !== "");
}

function commonPath(a: string[], b: string[]): string[] {
  const end = a.findIndex((part, i) => part !== b[i]);
  return end < 0 ? a : a.slice(0, end);
}

// Models of other tools have their layers in the names of their nodes: "/encoder/layer.0/MatMul".
function ownPath(node: NodeData): string[] {
  if (node.layer) return pathOf(node.layer);
  if (node.scope) return pathOf(node.scope);
  return node.name.startsWith("/") ? pathOf(node.name.slice(0, node.name.lastIndexOf("/"))) : [];
}

// The layer that a node surely belongs to: that of its weight of two or more dims. Small weights may
// be equal to those of other layers, and then they have the name of the first of them.
function surePath(node: NodeData, values: PageData["values"]): string[] | undefined {
  if (node.layer !== undefined) return pathOf(node.layer);
  for (const id of node.in) {
    const [name, type, kind] = values[id] ?? ["", "", 0];
    const isMatrix = kind === INITIALIZER && type.includes(",");
    if (isMatrix && name.includes(".")) return pathOf(name.slice(0, name.lastIndexOf(".")));
  }
  return undefined;
}

// The layer of each node. One that is not sure of it, or has none, must fit between those around it.
function paths({ nodes, values }: PageData): string[][] {
  const own = nodes.map(ownPath);
  const sure = nodes.map((node) => surePath(node, values));
  const trusted = sure.some((path) => path) ? sure : own.map((p) => (p.length ? p : undefined));
  const next: string[][] = [];
  let later: string[] = [];
  for (let i = nodes.length - 1; i >= 0; i--) {
    later = trusted[i] ?? later;
    next[i] = later;
  }
  let last: string[] = [];
  const left = new Set<string>(); // layers that others have followed
  return own.map((path, i) => {
    const certain = trusted[i];
    if (certain) {
      if (last.join() !== certain.join()) left.add(last.join());
      last = certain;
      return certain;
    }
    const around = commonPath(last, next[i] ?? []);
    const fits = path.length > 0 && around.every((part, k) => part === path[k]);
    return fits && !left.has(path.join()) ? path : around;
  });
}

export class Tree {
  readonly root = new Group("", "model", undefined);
  readonly leafOfNode: Leaf[] = [];
  readonly groupOfNode = new Map<number, Group>(); // of nodes with a body
  private readonly functions = new Map<string, Group>(); // by domain and name
  readonly producer = new Map<number, number>(); // by value
  readonly consumers = new Map<number, number[]>();
  private readonly groups = new Map<string, Group>();
  private readonly leafOfValue = new Map<number, Leaf>();

  constructor(readonly data: PageData) {
    this.addNodes();
    this.addBorders();
    this.shorten(this.root);
    this.cut(this.root);
    this.count(this.root);
    this.connect();
    this.root.expanded = true;
    this.openFirst();
  }

  // The groups around an item, from the outermost.
  static around(item: Item): Group[] {
    const result: Group[] = [];
    for (let g = item.parent; g; g = g.parent) result.unshift(g);
    return result;
  }

  groupById(id: string): Group | undefined {
    return id === "" ? this.root : this.groups.get(id);
  }

  get allGroups(): Iterable<Group> {
    return this.groups.values();
  }

  // The item that stands for a node in what is open now.
  visible(node: number): Item | undefined {
    const leaf = this.leafOfNode[node];
    if (!leaf) return this.groupOfNode.get(node);
    for (const group of Tree.around(leaf)) if (!group.expanded) return group;
    return leaf;
  }

  // The function that a node calls.
  functionOf(node: NodeData): Group | undefined {
    return this.functions.get(node.domain ? `${node.domain}.${node.op}` : node.op);
  }

  // The nodes that call a function; none where the group is not one.
  callsOf(group: Group): number[] {
    if (![...this.functions.values()].includes(group)) return [];
    return this.data.nodes.flatMap((node, i) => (this.functionOf(node) === group ? [i] : []));
  }

  neighbours(node: number): number[] {
    const own = this.data.nodes[node];
    const before = own?.in.map((value) => this.producer.get(value)) ?? [];
    const after = own?.out.flatMap((value) => this.consumers.get(value) ?? []) ?? [];
    return [...new Set([...before, ...after])].filter((i) => i !== undefined);
  }

  private addNodes(): void {
    const all = this.data.nodes;
    const where = paths(this.data);
    const bodies = new Map<number, Group>(); // by graph
    this.data.graphs.forEach((graph, i) => {
      if (graph.kind === "function") {
        const group = this.child(this.root, `function ${graph.name}`);
        group.layer = false;
        this.functions.set(graph.name, group);
        bodies.set(i, group);
      }
    });
    all.forEach((node, i) => {
      let group = bodies.get(node.graph) ?? this.root;
      for (const part of where[i] ?? []) group = this.child(group, part);
      const inner = this.data.graphs.flatMap((g, at) => (g.owner === i ? [at] : []));
      if (inner.length > 0) this.bodyGroup(group, i, inner, bodies);
      else this.addLeaf(group, i);
      for (const value of node.out) if (value >= 0) this.producer.set(value, i);
      for (const value of node.in) {
        const readers = this.consumers.get(value) ?? [];
        readers.push(i);
        this.consumers.set(value, readers);
      }
    });
  }

  private bodyGroup(parent: Group, node: number, graphs: number[], to: Map<number, Group>): void {
    const own = this.data.nodes[node] as NodeData;
    const group = this.child(parent, own.name || own.op, node);
    group.layer = false;
    group.first = node;
    this.groupOfNode.set(node, group);
    for (const graph of graphs) {
      const inside =
        graphs.length > 1 ? this.child(group, this.data.graphs[graph]?.name ?? "body") : group;
      inside.layer = false;
      to.set(graph, inside);
    }
  }

  private addLeaf(group: Group, index: number): void {
    const node = this.data.nodes[index] as NodeData;
    const type = this.data.values[node.out[0] ?? -1]?.[1] ?? "";
    const leaf: Leaf = { kind: "node", index, label: node.op, detail: type, parent: group };
    group.items.push(leaf);
    this.leafOfNode[index] = leaf;
  }

  // Inputs and outputs of the main graph are items of their own.
  private addBorders(): void {
    const main = this.data.graphs[0];
    const add = (kind: "input" | "output", value: number): Leaf => {
      const [label, detail] = this.data.values[value] ?? ["", ""];
      return { kind, index: value, label, detail, parent: this.root };
    };
    const inputs = (main?.inputs ?? [])
      .filter((value) => this.data.values[value]?.[2] !== INITIALIZER)
      .map((value) => add("input", value));
    for (const leaf of inputs) this.leafOfValue.set(leaf.index, leaf);
    this.root.items.unshift(...inputs);
    for (const value of main?.outputs ?? []) this.root.items.push(add("output", value));
  }

  private child(parent: Group, label: string, owner = -1): Group {
    const id = `${parent.id}/${label}${owner >= 0 ? `#${owner}` : ""}`;
    const known = this.groups.get(id);
    if (known) return known;
    const group = new Group(id, label, parent, owner);
    parent.items.push(group);
    this.groups.set(id, group);
    return group;
  }

  // A layer with one thing in it is that thing.
  private shorten(group: Group): void {
    group.items.forEach((item, i) => {
      if (item.kind !== "group") return;
      this.shorten(item);
      const only = item.items[0];
      if (item.items.length !== 1 || !only || !item.layer) return;
      if (only.kind === "group" && only.layer) only.label = `${item.label}.${only.label}`;
      else if (only.kind === "group") return;
      only.parent = group;
      group.items[i] = only;
      this.groups.delete(item.id);
    });
  }

  // Long lists become parts of nodes that follow each other.
  private cut(group: Group): void {
    for (const item of group.items) if (item.kind === "group") this.cut(item);
    while (group.items.length > MOST_ITEMS) {
      const old = group.items.splice(0);
      const size = Math.max(PART, Math.ceil(old.length / MOST_ITEMS));
      for (let i = 0; i < old.length; i += size) {
        const slice = old.slice(i, i + size);
        const part = this.child(group, `${i + 1}–${i + slice.length}`);
        part.layer = false;
        part.items.push(...slice);
        for (const item of slice) item.parent = part;
      }
    }
  }

  private count(group: Group): void {
    if (group.owner >= 0) group.count = 1;
    for (const item of group.items) {
      if (item.kind === "group") {
        this.count(item);
        group.count += item.count;
        group.first = Math.min(group.first, item.first);
      } else if (item.kind === "node") {
        group.count += 1;
        group.first = Math.min(group.first, item.index);
      }
    }
  }

  private connect(): void {
    this.data.nodes.forEach((node, i) => {
      const to = this.leafOfNode[i] ?? this.groupOfNode.get(i);
      for (const value of node.in) this.link(value, to);
    });
    for (const item of this.root.items) {
      if (item.kind === "output") this.link(item.index, item);
    }
  }

  private link(value: number, to: Item | undefined): void {
    const producer = this.producer.get(value);
    const from =
      producer === undefined
        ? this.leafOfValue.get(value)
        : (this.leafOfNode[producer] ?? this.groupOfNode.get(producer));
    if (!from || !to || from === to) return;
    const above: Item[] = [...Tree.around(from), from];
    const below: Item[] = [...Tree.around(to), to];
    let level = 0;
    while (above[level + 1] && above[level + 1] === below[level + 1]) level++;
    const common = above[level];
    const [source, target] = [above[level + 1], below[level + 1]];
    if (common?.kind !== "group" || !source || !target) return;
    this.edge(common, source, target, value);
    this.ports(above.slice(level + 1), value, false);
    this.ports(below.slice(level + 1), value, true);
  }

  // The way of a value from the border of each group to the item inside.
  private ports(path: Item[], value: number, isInput: boolean): void {
    for (let i = 0; i + 1 < path.length; i++) {
      const group = path[i];
      const item = path[i + 1];
      if (group?.kind !== "group" || !item) continue;
      const key = `${isInput}:${value}`;
      const port: Port = group.ports.get(key) ?? { kind: "port", isInput, value };
      group.ports.set(key, port);
      if (isInput) this.edge(group, port, item, value);
      else this.edge(group, item, port, value);
    }
  }

  private edge(group: Group, from: Item | Port, to: Item | Port, value: number): void {
    const key = `${keyOf(from)}>${keyOf(to)}`;
    const known = group.edges.get(key);
    if (known) known.values.add(value);
    else group.edges.set(key, { from, to, values: new Set([value]) });
  }

  // The first look: a model in one layer shows what is in it.
  private openFirst(): void {
    const ENOUGH = 12;
    for (let shown = this.root.items.length; shown < ENOUGH;) {
      const closed = [...this.allGroups].filter(
        (g) => !g.expanded && (g.parent?.expanded ?? false) && g.items.length <= MOST_ITEMS,
      );
      const largest = closed.sort((a, b) => b.count - a.count)[0];
      if (!largest) return;
      largest.expanded = true;
      shown += largest.items.length;
    }
  }
}

export function keyOf(item: Item | Port): string {
  if (item.kind === "port") return `p${item.isInput ? "i" : "o"}${item.value}`;
  return item.kind === "group" ? `g${item.id}` : `${item.kind}${item.index}`;
}
