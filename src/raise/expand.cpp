// SPDX-License-Identifier: Apache-2.0
// The decompositions of raised nodes: the fallback of targets that have no op for them, and what
// the tests compare each rule with.
#include <limits>

#include "raise/activation.h"
#include "raise/raise.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Use;

// x - max_s x, and what is needed to go on from there
struct Parts {
  Use shifted, exp, sum;
};
Parts parts(Graph& graph, const Use& use) {
  const DType dtype = use.node->dtype;
  // 16-bit sums are kept in f32, as JAX does.
  const DType sum_dtype = mantissa_bits(dtype) < mantissa_bits(DType::kF32) ? DType::kF32 : dtype;
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

Use expand_norm(Graph& graph, const Use& use) {
  const axis::Node& node = *use.node;
  const DType dtype = node.dtype;
  const Labels over = graph.role(use, "a");
  const auto n = static_cast<double>(graph.size_of(over).value());
  const auto mean = [&](const Use& x) {
    return graph.pointwise(
        "div", {graph.reduce("reduce_sum", x, over, dtype), graph.scalar(n, dtype)}, dtype);
  };
  const auto square = [&](const Use& x) { return graph.pointwise("mul", {x, x}, dtype); };
  const std::vector<Use> operands = graph.children(use);
  Use x = operands[0];
  if (flag(node, "center")) x = graph.pointwise("sub", {x, mean(x)}, dtype);
  const Use eps = graph.scalar(number(node, "eps"), dtype);
  const Use inverse =
      graph.pointwise("rsqrt", {graph.pointwise("add", {mean(square(x)), eps}, dtype)}, dtype);
  Use y = graph.pointwise("mul", {x, inverse}, dtype);
  std::size_t next = 1;
  if (flag(node, "scale")) y = graph.pointwise("mul", {y, operands[next++]}, dtype);
  if (flag(node, "bias")) y = graph.pointwise("add", {y, operands[next]}, dtype);
  return y;
}

Use expand_attention(Graph& graph, const Use& use) {
  const axis::Node& node = *use.node;
  const DType dtype = node.dtype;
  const std::vector<Use> operands = graph.children(use);
  const Labels s = graph.role(use, "s"), t = graph.role(use, "t");
  Use score = graph.contract(operands[0], operands[1], graph.role(use, "d"), dtype);
  score = graph.pointwise("mul", {score, graph.scalar(number(node, "scale"), dtype)}, dtype);
  if (const double cap = number(node, "cap"); cap != 0) {
    const Use limit = graph.scalar(cap, dtype);
    const Use ratio = graph.pointwise("div", {score, limit}, dtype);
    score = graph.pointwise("mul", {graph.pointwise("tanh", {ratio}, dtype), limit}, dtype);
  }
  if (flag(node, "causal")) {
    const Use row = graph.iota(t[0], DType::kI32), column = graph.iota(s[0], DType::kI32);
    const Use keep = graph.pointwise("ge", {row, column}, DType::kBool);
    const Use fill = graph.scalar(-std::numeric_limits<double>::infinity(), dtype);
    score = graph.pointwise("select_n", {keep, fill, score}, dtype);
  }
  if (operands.size() > 3) score = graph.pointwise("add", {score, operands[3]}, dtype);
  const Use weights = graph.macro("softmax", {score}, score.flat(), dtype, {{"s", s}});
  return graph.contract(weights, operands[2], s, dtype);
}

struct Expansion {
  std::string_view macro;
  axis::Expand expand;
};
constexpr Expansion kExpansions[] = {
    {"attention", expand_attention},
    {"log_softmax", expand_log_softmax},
    {"norm", expand_norm},
    {"softmax", expand_softmax},
};

axis::Expand find_expansion(const axis::Node& node) {
  if (node.kind == Kind::kPointwise) {
    return find_activation(node.name) ? expand_activation : nullptr;
  }
  if (node.kind != Kind::kMacro) return nullptr;
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
