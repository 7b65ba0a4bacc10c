// SPDX-License-Identifier: Apache-2.0
// For a Sigmoid with a small absolute error (Preferences::has_inexact_sigmoid), which is all that a
// sum or a product with larger numbers needs. Where a logarithm, a quotient or a root makes small
// numbers large, the definition takes its place.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "axis/graph/expr.h"
#include "lower/rewrite/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Use;

constexpr int kDeepestSigmoid = 6;

bool is_one_of(const Node& node, std::span<const std::string_view> names) {
  return node.kind == Kind::kPointwise && std::ranges::find(names, node.name) != names.end();
}

// The operand whose relative error reaches the result.
std::optional<std::size_t> sensitive_operand(const Node& node) {
  constexpr std::array<std::string_view, 4> kUnary{"cbrt", "log", "rsqrt", "sqrt"};
  if (is_one_of(node, kUnary)) return 0;
  if (node.kind != Kind::kPointwise) return std::nullopt;
  if (node.name == "div") return 1;
  if (node.name == "pow") return 0;
  const front::Attr* exponent = node.attr("y");
  if (node.name != "integer_pow" || exponent == nullptr) return std::nullopt;
  const auto* value = exponent->get_if<std::int64_t>();
  return value != nullptr && *value < 0 ? std::optional<std::size_t>(0) : std::nullopt;
}

Use rebuilt(Graph& graph, const Use& use, std::vector<Use> operands) {
  return graph.pointwise(use.node->name, std::move(operands), use.node->dtype, use.node->attrs);
}

// 1 / (1 + exp(-x)) for each sigmoid that the value passes on; empty when it has none.
Use exact(Graph& graph, const Use& use, int depth) {
  constexpr std::array<std::string_view, 2> kSigmoid{"logistic", "sigmoid"};
  constexpr std::array<std::string_view, 6> kPassing{"clamp", "max", "min",
                                                     "mul",   "neg", "select_n"};
  const DType dtype = use.node->dtype;
  if (dtype != DType::kF32 || depth == 0) return {};
  if (is_one_of(*use.node, kSigmoid)) return 1 / (1 + exp(-graph.child(use, 0)));
  if (!is_one_of(*use.node, kPassing)) return {};
  std::vector<Use> operands = graph.children(use);
  bool found = false;
  for (Use& operand : operands) {
    const Use other = exact(graph, operand, depth - 1);
    if (other) operand = other, found = true;
  }
  return found ? rebuilt(graph, use, std::move(operands)) : Use{};
}

}  // namespace

Use exact_sigmoid(Graph& graph, const Use& use) {
  const std::optional<std::size_t> sensitive = sensitive_operand(*use.node);
  if (!sensitive) return {};
  std::vector<Use> operands = graph.children(use);
  const Use other = exact(graph, operands[*sensitive], kDeepestSigmoid);
  if (!other) return {};
  operands[*sensitive] = other;
  return rebuilt(graph, use, std::move(operands));
}

}  // namespace jaxport::lower
