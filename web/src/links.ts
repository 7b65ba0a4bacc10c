// SPDX-License-Identifier: Apache-2.0
// Which lines and nodes belong together. Equations are the hinge: a source line has equations, an
// equation has lines of the raised form and nodes of the model that stand for it.
import { type PageData, placeOf } from "./data.ts";

export type Pane = "source" | "program" | "raised" | "graph";

// What is chosen: lines by their numbers in the pane, nodes by their index.
export interface Selection {
  source: Set<number>;
  program: Set<number>;
  raised: Set<number>;
  nodes: Set<number>;
}

export function nothing(): Selection {
  return { source: new Set(), program: new Set(), raised: new Set(), nodes: new Set() };
}

export interface SourceLine {
  text: string;
  label: string; // its number in the file; "" for the name of a file
}

function push<K>(map: Map<K, number[]>, key: K, value: number): void {
  const found = map.get(key);
  if (found) found.push(value);
  else map.set(key, [value]);
}

export class Links {
  readonly sourceLines: SourceLine[] = [];
  private readonly lineOfSource: (number | undefined)[] = [];
  private readonly sourcesOfLine = new Map<number, number[]>();
  private readonly equationsOfSource = new Map<number, number[]>();
  private readonly nodesOfSource = new Map<number, number[]>();
  private readonly nodesOfEquation = new Map<number, number[]>();
  private readonly programOfEquation = new Map<number, number[]>();
  private readonly raisedOfEquation = new Map<number, number[]>();
  private readonly equationOfProgram = new Map<number, number[]>();
  private readonly equationOfRaised = new Map<number, number[]>();
  private readonly standsForInNodes = new Map<number, number[]>(); // the equations in a node's one
  private readonly standsForInRaised = new Map<number, number[]>();

  constructor(private readonly data: PageData) {
    this.addSources();
    this.addEquations();
    data.nodes.forEach((node, i) => {
      if (node.equation) push(this.nodesOfEquation, node.equation, i);
      if (node.source) push(this.nodesOfSource, node.source, i);
    });
    for (const [line, equation] of data.program?.marks ?? []) {
      push(this.programOfEquation, equation, line);
      push(this.equationOfProgram, line, equation);
    }
    for (const [line, equation] of data.raised?.marks ?? []) {
      push(this.raisedOfEquation, equation, line);
      push(this.equationOfRaised, line, equation);
    }
  }

  // The files one below the other, each under its name.
  private addSources(): void {
    const lineOfPlace = new Map<string, number>();
    for (const file of this.data.files ?? []) {
      this.sourceLines.push({ text: file.name, label: "" });
      file.lines.forEach((text, i) => {
        lineOfPlace.set(`${file.name}:${file.first + i}`, this.sourceLines.length);
        this.sourceLines.push({ text, label: String(file.first + i) });
      });
    }
    this.data.sources.forEach((source, i) => {
      const place = placeOf(source);
      const line = place && lineOfPlace.get(`${place.file}:${place.line}`);
      this.lineOfSource.push(line);
      if (line !== undefined) push(this.sourcesOfLine, line, i);
    });
  }

  private addEquations(): void {
    this.data.equations?.forEach((equation, i) => {
      if (i === 0) return;
      if (equation.source) push(this.equationsOfSource, equation.source, i);
      for (const other of equation.nodes) push(this.standsForInNodes, other, i);
      for (const other of equation.raised) push(this.standsForInRaised, other, i);
    });
  }

  // Lines of a pane that something else belongs to.
  isLinked(pane: Pane, line: number): boolean {
    if (pane === "source") return this.sourcesOfLine.has(line);
    if (pane === "program") return this.equationOfProgram.has(line);
    return pane === "raised" && this.equationOfRaised.has(line);
  }

  sourceLineOf(source: number | undefined): number | undefined {
    return source === undefined ? undefined : this.lineOfSource[source];
  }

  // The equations that a node stands for.
  equationsOfNode(node: number): number[] {
    const equation = this.data.nodes[node]?.equation;
    return equation ? (this.standsForInNodes.get(equation) ?? [equation]) : [];
  }

  ofLine(pane: "source" | "program" | "raised", line: number): Selection {
    const result = nothing();
    result[pane].add(line);
    if (pane === "source") {
      const sources = this.sourcesOfLine.get(line) ?? [];
      const equations = sources.flatMap((s) => this.equationsOfSource.get(s) ?? []);
      if (equations.length > 0) this.addCounterparts(result, equations, pane);
      else for (const s of sources) this.addNodesOfSource(result, s);
    } else {
      const own = (pane === "program" ? this.equationOfProgram : this.equationOfRaised).get(line);
      const whole = (own ?? []).flatMap((e) =>
        pane === "program" ? [e] : (this.standsForInRaised.get(e) ?? [e]),
      );
      this.addCounterparts(result, whole, pane);
    }
    return result;
  }

  ofNodes(nodes: Iterable<number>): Selection {
    const result = nothing();
    const equations = new Set<number>();
    for (const node of nodes) {
      result.nodes.add(node);
      for (const equation of this.equationsOfNode(node)) equations.add(equation);
      const line = this.sourceLineOf(this.data.nodes[node]?.source);
      if (line !== undefined) result.source.add(line);
    }
    this.addCounterparts(result, equations, "graph");
    return result;
  }

  private addNodesOfSource(to: Selection, source: number): void {
    for (const node of this.nodesOfSource.get(source) ?? []) to.nodes.add(node);
  }

  // Everything that belongs to these equations, in all panes but the one where the choice was made.
  private addCounterparts(to: Selection, equations: Iterable<number>, chosenIn: Pane): void {
    const add = (pane: "source" | "program" | "raised" | "nodes", lines: number[] | undefined) => {
      for (const line of lines ?? []) to[pane].add(line);
    };
    for (const number of equations) {
      const equation = this.data.equations?.[number];
      if (!equation) continue;
      const line = this.sourceLineOf(equation.source);
      if (chosenIn !== "source" && line !== undefined) add("source", [line]);
      if (chosenIn !== "program") add("program", this.programOfEquation.get(number));
      if (chosenIn !== "raised")
        for (const e of equation.raised) add("raised", this.raisedOfEquation.get(e));
      if (chosenIn !== "graph")
        for (const e of equation.nodes) add("nodes", this.nodesOfEquation.get(e));
    }
  }
}
