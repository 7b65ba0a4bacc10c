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
  points: Point[];
}

export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  lines: Line[];
}

interface Point {
  x: number;
  y: number;
}

// What dagre makes of boxes and of the edges between them, both in their order.
interface Arrangement {
  width: number;
  height: number;
  centers: Point[];
  points: Point[][];
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
  private readonly shapes = new Map<string, Arrangement>();

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
    const items = [...group.ports.values(), ...group.items];
    const boxes = items.map((item): Box => {
      const inside = item.kind === "group" && item.expanded ? this.of(item) : undefined;
      const { width, height } = inside ?? sizeOf(item);
      return { item, x: 0, y: 0, width, height, ...(inside ? { inside } : {}) };
    });
    const index = new Map(items.map((item, i) => [keyOf(item), i]));
    const edges = [...group.edges.values()];
    const ends = edges.map((edge): [number, number] => {
      const [from, to] = [index.get(keyOf(edge.from)), index.get(keyOf(edge.to))] as [
        number,
        number,
      ];
      return isUpwards(edge) ? [to, from] : [from, to];
    });
    const sizes = boxes.map(({ width, height }): [number, number] => [width, height]);
    return this.arranged(group, boxes, edges, this.arrangement(sizes, ends));
  }

  // The layers of a network are alike: dagre, which takes long, sees one of them.
  private arrangement(sizes: [number, number][], ends: [number, number][]): Arrangement {
    const shape = JSON.stringify([sizes, ends]);
    const known = this.shapes.get(shape);
    if (known) return known;
    const found = arrange(sizes, ends);
    this.shapes.set(shape, found);
    return found;
  }

  private arranged(group: Group, boxes: Box[], edges: Edge[], found: Arrangement): Layout {
    const top = group.parent ? HEADER + PADDING : PADDING;
    boxes.forEach((box, i) => {
      const center = found.centers[i] as Point;
      box.x = center.x - box.width / 2 + PADDING;
      box.y = center.y - box.height / 2 + top;
    });
    const lines = edges.map((edge, i) => {
      const points = (found.points[i] ?? []).map(({ x, y }) => ({ x: x + PADDING, y: y + top }));
      if (isUpwards(edge)) points.reverse();
      return { edge, points };
    });
    const label = (group.label.length + 16) * CHARACTER;
    return {
      width: Math.max(found.width + 2 * PADDING, label),
      height: found.height + top + PADDING,
      boxes,
      lines,
    };
  }
}

function arrange(sizes: [number, number][], ends: [number, number][]): Arrangement {
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
  sizes.forEach(([width, height], i) => graph.setNode(String(i), { width, height }));
  for (const [from, to] of ends) graph.setEdge(String(from), String(to), {});
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    centers: sizes.map((_, i) => graph.node(String(i)) as Point),
    points: ends.map(([from, to]) => {
      const label = graph.edge(String(from), String(to)) as { points?: Point[] };
      return label.points ?? [];
    }),
  };
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
