// SPDX-License-Identifier: Apache-2.0
#include "target/neutral.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "onnx/expr.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;

struct Form {
  std::string_view op;
  double neutral;
  bool commutes;
};
constexpr Form kForms[] = {
    {"Add", 0, true}, {"Div", 1, false}, {"Mul", 1, true}, {"Sub", 0, false}};

// Which operand is one number of f64 that only f32 takes for the neutral one.
std::optional<std::size_t> nearly_neutral(const Builder& op, const Node& node) {
  const auto form = std::ranges::find(kForms, std::string_view(node.op), &Form::op);
  if (form == std::end(kForms) || !node.domain.empty()) return std::nullopt;
  for (std::size_t i = form->commutes ? 0 : 1; i < 2; ++i) {
    const Tensor* constant = op.known(node.in[i]);
    if (!constant || constant->dtype != DType::kF64 || constant->size() != 1) continue;
    const double value = constant->at(0);
    if (value != form->neutral && static_cast<float>(value) == form->neutral) return i;
  }
  return std::nullopt;
}

Value negative(Builder& op, const Tensor& constant) {
  const Shape strides(constant.shape.size(), 0);
  return op.weight({scalar(DType::kF64, -constant.at(0)), 0, constant.shape, strides},
                   constant.shape, "");
}

// x + c = c - (-x), x - c = -c - (-x), x * c = (-x) * (-c), x / c = (-x) / (-c): the same
// roundings.
void negate(const Model& model, Builder& op, Node& node, std::size_t at) {
  op.set_origin(model.origins[node.origin]);
  const Value x = -Value(&op, node.in[1 - at]);
  if (node.op == "Add") {
    node.op = "Sub";
    node.in = {node.in[at], x.id()};
    return;
  }
  const Value constant = negative(op, *op.known(node.in[at]));
  node.in = {x.id(), constant.id()};
  if (node.op == "Sub") std::swap(node.in[0], node.in[1]);
}

}  // namespace

bool keep_nearly_neutral(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_removed = [&](const Node& node) { return nearly_neutral(op, node).has_value(); };
    if (std::ranges::none_of(graph.nodes, is_removed)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (const auto at = nearly_neutral(op, node)) negate(model, op, node, *at);
      graph.nodes.push_back(std::move(node));
    }
    return true;
  });
}

}  // namespace jaxport::target
