// SPDX-License-Identifier: Apache-2.0
// Where everything stands. Each open group is laid out by itself, with dagre; an open group inside
// is one box of the size of its own layout. So no layout has more than a hundred boxes.
import { Graph, layout } from "@dagrejs/dagre";
import { type Edge, type Group, type Item, keyOf, type Port } from "./tree.ts";

export interface Box {
  item: Item | Port;
  x: number; // of the left upper corner, in the group around it
  y: number;
  width: number;
  height: number;
  inside?: Layout;
}

export interface Line {
  edge: Edge;
  points: { x: number; y: number }[];
}

export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  lines: Line[];
}

export const HEADER = 30;
const PADDING = 14;
const CHARACTER = 7.2;

function sizeOf(item: Item | Port): { width: number; height: number } {
  if (item.kind === "port") return { width: 8, height: 8 };
  if (item.kind === "group") {
    const width = Math.max(150, item.label.length * 8 + 115);
    return { width, height: 40 };
  }
  const longest = Math.max(item.label.length * 8, item.detail.length * 6.3);
  return { width: Math.min(Math.max(90, longest + 26), 280), height: 44 };
}

export class Layouts {
  private readonly known = new Map<Group, Layout>();

  of(group: Group): Layout {
    const known = this.known.get(group);
    if (known) return known;
    const found = this.compute(group);
    this.known.set(group, found);
    return found;
  }

  // After a group was opened or closed.
  forget(group: Group): void {
    for (let g: Group | undefined = group; g; g = g.parent) this.known.delete(g);
  }

  private compute(group: Group): Layout {
    const graph = new Graph();
    graph.setGraph({
      rankdir: "TB",
      nodesep: 22,
      ranksep: 30,
      edgesep: 12,
      marginx: 0,
      marginy: 0,
    });
    graph.setDefaultEdgeLabel(() => ({}));
    const boxes = new Map<string, Box>();
    for (const item of [...group.ports.values(), ...group.items]) {
      const inside = item.kind === "group" && item.expanded ? this.of(item) : undefined;
      const size = inside ?? sizeOf(item);
      const key = keyOf(item);
      boxes.set(key, { item, x: 0, y: 0, ...pick(size), ...(inside ? { inside } : {}) });
      graph.setNode(key, pick(size));
    }
    for (const edge of group.edges.values()) {
      const [up, down] = isUpwards(edge) ? [edge.to, edge.from] : [edge.from, edge.to];
      graph.setEdge(keyOf(up), keyOf(down), {});
    }
    layout(graph);
    return this.placed(graph, group, boxes);
  }

  private placed(graph: Graph, group: Group, boxes: Map<string, Box>): Layout {
    const top = group.parent ? HEADER + PADDING : PADDING;
    for (const [key, box] of boxes) {
      const at = graph.node(key) as { x: number; y: number };
      box.x = at.x - box.width / 2 + PADDING;
      box.y = at.y - box.height / 2 + top;
    }
    const lines = [...group.edges.values()].map((edge) => {
      const up = isUpwards(edge);
      const [from, to] = up ? [edge.to, edge.from] : [edge.from, edge.to];
      const label = graph.edge(keyOf(from), keyOf(to)) as { points?: { x: number; y: number }[] };
      const points = (label.points ?? []).map(({ x, y }) => ({ x: x + PADDING, y: y + top }));
      if (up) points.reverse();
      return { edge, points };
    });
    const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
    const label = (group.label.length + 16) * CHARACTER;
    return {
      width: Math.max(width + 2 * PADDING, label),
      height: height + top + PADDING,
      boxes: [...boxes.values()],
      lines,
    };
  }
}

// Groups may have edges both ways; then what comes first in the program stands above.
function isUpwards({ from, to }: Edge): boolean {
  return orderOf(from) > orderOf(to);
}

function orderOf(item: Item | Port): number {
  if (item.kind === "port") return item.isInput ? -2 : Number.POSITIVE_INFINITY;
  if (item.kind === "group") return item.first;
  return item.kind === "node" ? item.index : item.kind === "input" ? -1 : Number.POSITIVE_INFINITY;
}

function pick(size: { width: number; height: number }): { width: number; height: number } {
  return { width: size.width, height: size.height };
}
