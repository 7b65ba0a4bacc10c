// SPDX-License-Identifier: Apache-2.0
// The decompositions of raised nodes: the fallback of targets that have no op for them, and what
// the tests compare each rule with.
#include <cmath>
#include <limits>

#include "axis/size_value.h"
#include "raise/activation.h"
#include "raise/expansions.h"
#include "raise/raise.h"
#include "raise/recurrent.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Use;

// 16-bit sums are kept in f32, as JAX does.
DType sum_type(DType dtype) {
  return mantissa_bits(dtype) < mantissa_bits(DType::kF32) ? DType::kF32 : dtype;
}

// Of bf16, f16, f32 and f64.
double largest_finite(DType dtype) {
  const int exponent = dtype == DType::kF64 ? 1023 : dtype == DType::kF16 ? 15 : 127;
  return std::ldexp(2 - std::ldexp(1, -mantissa_bits(dtype)), exponent);
}

// x - max_s x, and what is needed to go on from there
struct Parts {
  Use shifted, exp, sum;
};
Parts parts(Graph& graph, const Use& use) {
  const DType dtype = use.node->dtype;
  const DType sum_dtype = sum_type(dtype);
  const Labels s = graph.role(use, "s");
  const Use x = graph.child(use, 0);
  const Use max = graph.reduce("reduce_max", x, s, dtype);
  Parts p;
  p.shifted = graph.pointwise("sub", {x, max}, dtype);
  p.exp = graph.pointwise("exp", {p.shifted}, dtype);
  p.sum = convert(graph, graph.reduce("reduce_sum", convert(graph, p.exp, sum_dtype), s, sum_dtype),
                  dtype);
  return p;
}

Use expand_softmax(Graph& graph, const Use& use) {
  const Parts p = parts(graph, use);
  return graph.pointwise("div", {p.exp, p.sum}, use.node->dtype);
}

Use expand_log_softmax(Graph& graph, const Use& use) {
  const Parts p = parts(graph, use);
  const DType dtype = use.node->dtype;
  return graph.pointwise("sub", {p.shifted, graph.pointwise("log", {p.sum}, dtype)}, dtype);
}

// The largest element where it is finite: x - max_s x is NaN where both are infinite.
Use expand_logsumexp(Graph& graph, const Use& use) {
  const DType dtype = use.node->dtype;
  const DType sum_dtype = sum_type(dtype);
  const Labels s = graph.role(use, "s");
  const Use x = graph.child(use, 0);
  const Use lowest = graph.scalar(-largest_finite(dtype), dtype);
  const Use highest = graph.scalar(largest_finite(dtype), dtype);
  const Use max =
      graph.pointwise("clamp", {lowest, graph.reduce("reduce_max", x, s, dtype), highest}, dtype);
  const Use exp = graph.pointwise("exp", {graph.pointwise("sub", {x, max}, dtype)}, dtype);
  const Use sum = graph.reduce("reduce_sum", convert(graph, exp, sum_dtype), s, sum_dtype);
  const Use log = graph.pointwise("log", {convert(graph, sum, dtype)}, dtype);
  return graph.pointwise("add", {log, max}, dtype);
}

// x where x >= 0, slope * x elsewhere
Use expand_prelu(Graph& graph, const Use& use) {
  const DType dtype = use.node->dtype;
  const Use x = graph.child(use, 0), slope = graph.child(use, 1);
  const Use keeps = graph.pointwise("ge", {x, graph.scalar(0, dtype)}, DType::kBool);
  const Use scaled = graph.pointwise("mul", {x, slope}, dtype);
  return graph.pointwise("select_n", {keeps, scaled, x}, dtype);
}

Use expand_norm(Graph& graph, const Use& use) {
  const axis::Node& node = *use.node;
  const DType dtype = sum_type(node.dtype);
  const Labels over = graph.role(use, "a");
  const Use n = convert(graph, axis::size_as_value(graph, graph.size_of(over), DType::kI64), dtype);
  const auto mean = [&](const Use& x) {
    return graph.pointwise("div", {graph.reduce("reduce_sum", x, over, dtype), n}, dtype);
  };
  const auto square = [&](const Use& x) { return graph.pointwise("mul", {x, x}, dtype); };
  std::vector<Use> operands = graph.children(use);
  for (Use& operand : operands) operand = convert(graph, operand, dtype);
  Use x = operands[0];
  if (flag(node, "center")) x = graph.pointwise("sub", {x, mean(x)}, dtype);
  const Use eps = graph.scalar(number(node, "eps"), dtype);
  const Use inverse =
      graph.pointwise("rsqrt", {graph.pointwise("add", {mean(square(x)), eps}, dtype)}, dtype);
  Use y = graph.pointwise("mul", {x, inverse}, dtype);
  std::size_t next = 1;
  if (flag(node, "scale")) y = graph.pointwise("mul", {y, operands[next++]}, dtype);
  if (flag(node, "bias")) y = graph.pointwise("add", {y, operands[next]}, dtype);
  return convert(graph, y, node.dtype);
}

// The score of attention before masks: scale * sum_d q k, within the cap.
Use expand_score(Graph& graph, const Use& use, const std::vector<Use>& operands, DType dtype) {
  const axis::Node& node = *use.node;
  Use score = graph.contract(operands[0], operands[1], graph.role(use, "d"), dtype);
  score = graph.pointwise("mul", {score, graph.scalar(number(node, "scale"), dtype)}, dtype);
  if (const double cap = number(node, "cap"); cap != 0) {
    const Use limit = graph.scalar(cap, dtype);
    const Use ratio = graph.pointwise("div", {score, limit}, dtype);
    score = graph.pointwise("mul", {graph.pointwise("tanh", {ratio}, dtype), limit}, dtype);
  }
  return score;
}

// The fourth operand is added to the score. Where the fifth is false, it is all of the score.
Use expand_attention(Graph& graph, const Use& use) {
  const axis::Node& node = *use.node;
  // Scores and weights of 16-bit operands are f32.
  const DType dtype =
      mantissa_bits(node.dtype) < mantissa_bits(DType::kF32) ? DType::kF32 : node.dtype;
  const Use never = graph.scalar(-std::numeric_limits<double>::infinity(), dtype);
  const std::vector<Use> operands = graph.children(use);
  const Labels s = graph.role(use, "s");
  Use score = expand_score(graph, use, operands, dtype);
  if (operands.size() > 3) score = graph.pointwise("add", {score, operands[3]}, dtype);
  if (operands.size() > 4)
    score = graph.pointwise("select_n", {operands[4], operands[3], score}, dtype);
  if (flag(node, "causal")) {
    const Use row = graph.iota(graph.role(use, "t")[0], DType::kI32);
    const Use column = graph.iota(s[0], DType::kI32);
    const Use keep = graph.pointwise("ge", {row, column}, DType::kBool);
    score = graph.pointwise("select_n", {keep, never, score}, dtype);
  }
  Use weights = graph.macro("softmax", {score}, score.flat(), dtype, {{"s", s}});
  if (flag(node, "zero_rows")) {
    const Use masked = graph.pointwise("eq", {operands[3], never}, DType::kBool);
    weights = graph.pointwise("select_n", {masked, weights, graph.scalar(0, dtype)}, dtype);
  }
  return graph.contract(convert(graph, weights, node.dtype), operands[2], s, node.dtype);
}

struct Expansion {
  std::string_view macro;
  axis::Expand expand;
};
constexpr Expansion kExpansions[] = {
    {"attention", expand_attention},
    {"log_softmax", expand_log_softmax},
    {"logsumexp", expand_logsumexp},
    {"norm", expand_norm},
    {"partial_rope", expand_partial_rope},
    {"prelu", expand_prelu},
    {"resize", expand_resize},
    {"rope", expand_rope},
    {"softmax", expand_softmax},
};

axis::Expand find_expansion(const axis::Node& node) {
  if (node.kind == Kind::kPointwise && find_activation(node.name)) return expand_activation;
  if (is_recurrent(node)) return expand_recurrent;
  if (node.kind != Kind::kMacro && node.kind != Kind::kPointwise) return nullptr;
  for (const Expansion& expansion : kExpansions) {
    if (expansion.macro == node.name) return expansion.expand;
  }
  return nullptr;
}

}  // namespace

Use expand(Graph& graph, const Use& use) {
  const axis::Expand expansion = find_expansion(*use.node);
  return expansion ? expansion(graph, use) : Use{};
}

bool is_raised(const axis::Node& node) { return find_expansion(node) != nullptr; }

}  // namespace jaxport::raise
