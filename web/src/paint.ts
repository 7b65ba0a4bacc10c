// SPDX-License-Identifier: Apache-2.0
// Colours for source lines and the two program forms, and the families of ops.
import { escaped } from "./dom.ts";

const PYTHON =
  /(#.*$)|("""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|class|return|for|in|if|else|elif|import|from|as|with|lambda|not|and|or|is|None|True|False|while|yield|self|raise|try|except)\b|(@[\w.]+)|\b(\d[\d_.e]*)\b/g;
const PROGRAM =
  /(\/\/.*$)|("(?:[^"\\]|\\.)*")|(%[\w.]+(?:#\d+)?)|\b((?:f|i|u|bf)\d+|bool|c64|c128)(?=[[ ]|$)|(?<== )([\w.]+)|\b(-?\d[\d.e-]*)\b/g;

function painter(pattern: RegExp, classes: string[]): (text: string) => string {
  return (text) => {
    let html = "";
    let last = 0;
    for (const match of text.matchAll(pattern)) {
      const which = match.slice(1).findIndex((group) => group !== undefined);
      html += escaped(text.slice(last, match.index));
      html += `<span class="${classes[which] ?? ""}">${escaped(match[0])}</span>`;
      last = match.index + match[0].length;
    }
    return html + escaped(text.slice(last));
  };
}

export const paintPython = painter(PYTHON, ["comment", "string", "keyword", "keyword", "number-"]);
export const paintProgram = painter(PROGRAM, [
  "comment",
  "string",
  "variable",
  "type",
  "keyword",
  "number-",
]);

const FAMILIES: Record<string, string[]> = {
  product: ["MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "MatMulInteger", "QLinearConv"],
  fused: [
    "Attention",
    "LayerNormalization",
    "RMSNormalization",
    "BatchNormalization",
    "GroupNormalization",
    "InstanceNormalization",
    "RotaryEmbedding",
    "Softmax",
    "LogSoftmax",
    "Gelu",
    "LSTM",
    "GRU",
    "RNN",
    "Resize",
    "Swish",
    "Mish",
  ],
  move: [
    "Transpose",
    "Reshape",
    "Expand",
    "Squeeze",
    "Unsqueeze",
    "Slice",
    "Concat",
    "Split",
    "Gather",
    "GatherElements",
    "GatherND",
    "ScatterND",
    "Pad",
    "Tile",
    "Identity",
    "Flatten",
    "DepthToSpace",
    "SpaceToDepth",
  ],
  cast: ["Cast", "CastLike", "QuantizeLinear", "DequantizeLinear"],
  control: ["If", "Loop", "Scan"],
  reduce: ["MaxPool", "AveragePool", "GlobalAveragePool", "TopK", "ArgMax", "ArgMin", "CumSum"],
  size: ["Shape", "Size", "Constant", "ConstantOfShape", "Range", "EyeLike"],
};
const FAMILY_OF = new Map(
  Object.entries(FAMILIES).flatMap(([family, ops]) => ops.map((op) => [op, family] as const)),
);

export function familyOf(op: string): string {
  return FAMILY_OF.get(op) ?? (op.startsWith("Reduce") ? "reduce" : "other");
}
