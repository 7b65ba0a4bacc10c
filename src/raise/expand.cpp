// SPDX-License-Identifier: Apache-2.0
// The decompositions of raised nodes: the fallback of targets that have no op for them, and what
// the tests compare each rule with.
#include <cmath>
#include <limits>

#include "axis/expr.h"
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

DType sum_type(DType dtype) {
  return mantissa_bits(dtype) < mantissa_bits(DType::kF32) ? DType::kF32 : dtype;
}

// Of bf16, f16, f32 and f64.
double largest_finite(DType dtype) {
  const int exponent = dtype == DType::kF64 ? 1023 : dtype == DType::kF16 ? 15 : 127;
  return std::ldexp(2 - std::ldexp(1, -mantissa_bits(dtype)), exponent);
}

// The sum over s. 16-bit sums are kept in f32, as JAX does.
Use summed(const Use& x, const Labels& s) {
  const DType dtype = x.node->dtype;
  return convert(reduce_sum(convert(x, sum_type(dtype)), s), dtype);
}

// x - max_s x, and what is needed to go on from there
struct Parts {
  Use shifted, exp, sum;
};
Parts parts(Graph& graph, const Use& use) {
  const Labels s = graph.role(use, "s");
  const Use x = graph.child(use, 0);
  Parts p;
  p.shifted = x - reduce_max(x, s);
  p.exp = exp(p.shifted);
  p.sum = summed(p.exp, s);
  return p;
}

Use expand_softmax(Graph& graph, const Use& use) {
  const Parts p = parts(graph, use);
  return p.exp / p.sum;
}

Use expand_log_softmax(Graph& graph, const Use& use) {
  const Parts p = parts(graph, use);
  return p.shifted - log(p.sum);
}

// The largest element where it is finite: x - max_s x is NaN where both are infinite.
Use expand_logsumexp(Graph& graph, const Use& use) {
  const Labels s = graph.role(use, "s");
  const Use x = graph.child(use, 0);
  const double largest = largest_finite(use.node->dtype);
  const Use max = clamp(-largest, reduce_max(x, s), largest);
  return log(summed(exp(x - max), s)) + max;
}

// x where x >= 0, slope * x elsewhere
Use expand_prelu(Graph& graph, const Use& use) {
  const Use x = graph.child(use, 0), slope = graph.child(use, 1);
  const Use keeps = ge(x, 0);
  return select(keeps, x, slope * x);
}

Use expand_norm(Graph& graph, const Use& use) {
  const axis::Node& node = *use.node;
  const DType dtype = sum_type(node.dtype);
  const Labels over = graph.role(use, "a");
  const Use n = convert(axis::size_as_value(graph, graph.size_of(over), DType::kI64), dtype);
  const auto mean = [&](const Use& x) { return reduce_sum(x, over) / n; };
  std::vector<Use> operands = graph.children(use);
  for (Use& operand : operands) operand = convert(operand, dtype);
  Use x = operands[0];
  if (flag(node, "center")) x = x - mean(x);
  Use y = x * rsqrt(mean(x * x) + number(node, "eps"));
  std::size_t next = 1;
  if (flag(node, "scale")) y = y * operands[next++];
  if (flag(node, "bias")) y = y + operands[next];
  return convert(y, node.dtype);
}

// The score of attention before masks: scale * sum_d q k, within the cap.
Use expand_score(Graph& graph, const Use& use, const std::vector<Use>& operands, DType dtype) {
  const axis::Node& node = *use.node;
  const Use score =
      graph.contract(operands[0], operands[1], graph.role(use, "d"), dtype) * number(node, "scale");
  const double cap = number(node, "cap");
  return cap == 0 ? score : tanh(score / cap) * cap;
}

// The fourth operand is added to the score. Where the fifth is false, it is all of the score.
Use expand_attention(Graph& graph, const Use& use) {
  const axis::Node& node = *use.node;
  // Scores and weights of 16-bit operands are f32.
  const DType dtype = sum_type(node.dtype);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const std::vector<Use> operands = graph.children(use);
  const Labels s = graph.role(use, "s");
  Use score = expand_score(graph, use, operands, dtype);
  if (operands.size() > 3) score = score + operands[3];
  if (operands.size() > 4) score = select(operands[4], score, operands[3]);
  if (flag(node, "causal")) {
    const Use row = graph.iota(graph.role(use, "t")[0], DType::kI32);
    const Use column = graph.iota(s[0], DType::kI32);
    score = select(ge(row, column), score, kNever);
  }
  Use weights = graph.macro("softmax", {score}, score.flat(), dtype, {{"s", s}});
  if (flag(node, "zero_rows")) weights = select(eq(operands[3], kNever), 0, weights);
  return graph.contract(convert(weights, node.dtype), operands[2], s, node.dtype);
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
