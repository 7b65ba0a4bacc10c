// SPDX-License-Identifier: Apache-2.0
// Sums over nodes.
import { INITIALIZER, type PageData } from "./data.ts";

export interface Totals {
  nodes: number;
  parameters: number;
  bytes: number;
  flops: number;
  moved: number;
  transposes: number;
  casts: number;
  seconds: number;
  ops: Map<string, number>;
}

// A weight that several of these nodes read counts once.
export function totalsOf(data: PageData, nodes: Iterable<number>): Totals {
  const totals: Totals = {
    nodes: 0,
    parameters: 0,
    bytes: 0,
    flops: 0,
    moved: 0,
    transposes: 0,
    casts: 0,
    seconds: 0,
    ops: new Map(),
  };
  const weights = new Set<number>();
  for (const index of nodes) {
    const node = data.nodes[index];
    if (!node) continue;
    totals.nodes++;
    totals.flops += node.flops ?? 0;
    totals.moved += node.moved ?? 0;
    totals.seconds += data.profile?.nodes[node.name] ?? 0;
    if (node.op === "Transpose") totals.transposes++;
    if (node.op === "Cast") totals.casts++;
    totals.ops.set(node.op, (totals.ops.get(node.op) ?? 0) + 1);
    for (const id of node.in) {
      const value = data.values[id];
      if (value?.[2] !== INITIALIZER || weights.has(id)) continue;
      weights.add(id);
      totals.parameters += value[3];
      totals.bytes += value[4];
    }
  }
  return totals;
}
