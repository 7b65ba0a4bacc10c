// SPDX-License-Identifier: Apache-2.0
// What the page is given. src/explore/explore.h writes most of it, python/jaxport/explorer the rest.

export interface ModelFacts {
  name: string;
  opset: number;
  producer: string;
  requires: string;
  nodes: number;
  parameters: number;
  bytes: number;
  symbols: string[];
  ops: Record<string, number>;
}

export interface GraphData {
  name: string;
  kind: "main" | "body" | "function";
  owner: number; // the node around a body, -1 for others
  inputs: number[];
  outputs: number[];
}

export const COMPUTED = 0;
export const INPUT = 1;
export const INITIALIZER = 2;
// name, type, kind, elements, bytes
export type ValueData = [string, string, number, number, number];

export interface NodeData {
  op: string;
  name: string;
  graph: number;
  domain?: string;
  in: number[];
  out: number[];
  scope?: string;
  layer?: string;
  source?: number;
  equation?: number;
  made?: "lower" | "target" | "passes";
  flops?: number;
  moved?: number;
  attrs?: Record<string, string>;
}

export interface Marked {
  text: string;
  marks: [line: number, equation: number][];
}

export interface EquationData {
  primitive: string;
  source?: number;
  library?: number;
  layer?: string;
  raised: number[];
  nodes: number[];
  rule?: string;
  remarks?: string[];
}

export interface RuntimeData {
  name: string;
  needs: string; // the first version from which on all load the model; "" if the newest does not
  versions: { version: string; misfits: [what: string, where: string][] }[];
  notes: string[];
  advice: string;
}

export interface SourceFile {
  name: string;
  first: number; // the number of the first line
  lines: string[];
}

export interface OutputCheck {
  name: string;
  dtype: string;
  shape: number[];
  verdict: string;
  problem: string;
  largest_difference: number;
  ulps: number;
  share: number;
}

export interface Verification {
  verdict: string;
  at_fault: string;
  checks: {
    sizes: Record<string, number>;
    inputs: string;
    outputs: OutputCheck[];
    skipped: string;
  }[];
  place: { source: string; source_line: string; equation: string; node: string; op: string } | null;
  notes: string[];
  versions: Record<string, string>;
}

// Of one node's results beside the equation that has the same numbers.
export interface NodeError {
  node: string;
  relative: number; // the largest difference as a part of the largest number
  ulps: number;
}

export interface Profile {
  runs: number;
  sizes: Record<string, number>;
  seconds: number; // of a run of the whole model, the median
  jax?: number; // of jax.jit on the same inputs
  nodes: Record<string, number>; // seconds by the name of a node
  elsewhere: [name: string, op: string, seconds: number][]; // nodes that only the runtime has
  runtime: string;
}

export interface PageData {
  title: string;
  version: string;
  model: ModelFacts;
  graphs: GraphData[];
  values: ValueData[];
  nodes: NodeData[];
  sources: string[];
  runtimes: RuntimeData[];
  program?: Marked;
  raised?: Marked;
  equations?: EquationData[];
  files?: SourceFile[];
  verification?: Verification;
  errors?: NodeError[];
  profile?: Profile;
  left_out?: string[];
}

export function readData(): PageData {
  return JSON.parse(document.getElementById("data")?.textContent ?? "{}") as PageData;
}

// "model.py:42 in Net.__call__" as its file and line.
export function placeOf(source: string): { file: string; line: number } | undefined {
  const match = /^(.*?):(\d+)(?: in |$)/.exec(source);
  return match?.[1] ? { file: match[1], line: Number(match[2]) } : undefined;
}
