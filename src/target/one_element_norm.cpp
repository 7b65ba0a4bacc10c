// SPDX-License-Identifier: Apache-2.0
#include "target/one_element_norm.h"

#include <algorithm>
#include <span>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "onnx/subgraph.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::Values;

std::int64_t axis_of(const Node& node) { return int_attribute(node, "axis", -1); }

// The sizes that are normalised over; none when they are not known.
std::span<const Dim> normalised(const Model& model, const Node& node) {
  if (node.op != "LayerNormalization" || !node.domain.empty() || node.in.empty()) return {};
  const auto& type = model.values[node.in[0]].type;
  if (!type || !type->shape) return {};
  const auto rank = static_cast<std::int64_t>(type->shape->size());
  const std::int64_t axis = axis_of(node) < 0 ? rank + axis_of(node) : axis_of(node);
  if (axis < 0 || axis >= rank) return {};
  return std::span(*type->shape).subspan(static_cast<std::size_t>(axis));
}

bool may_be_refused(const Model& model, const Node& node) {
  const auto sizes = normalised(model, node);
  return node.out.size() == 1 && !sizes.empty() && std::ranges::all_of(sizes, [](const Dim& size) {
           return !size.is_static() || size.value() <= 1;
         });
}

Value operand(Builder& op, const Node& node, std::size_t i) {
  return i < node.in.size() && node.in[i] != onnx::kAbsent ? Value(&op, node.in[i]) : Value();
}

void guard(Builder& op, const Node& node) {
  onnx::Args args;
  for (const onnx::Attribute& attribute : node.attrs) {
    args.emplace_back("", 0);
    args.back().attribute = attribute;
  }
  const auto norm = [&](Builder& inner) -> Values {
    return {inner.call("LayerNormalization",
                       {operand(inner, node, 0), operand(inner, node, 1), operand(inner, node, 2)},
                       args)};
  };
  // What is not finite gives NaN, as in the norm.
  const auto of_one = [&](Builder& inner) -> Values {
    const Value x = operand(inner, node, 0), bias = operand(inner, node, 2);
    const Value scaled = (x - x) * operand(inner, node, 1);
    return {bias ? scaled + bias : scaled};
  };
  const Value sizes = op.Shape(Value(&op, node.in[0]), onnx::Args{{"start", axis_of(node)}});
  const Value count = sizes.shape()[0].is_one() ? sizes : op.ReduceMax(sizes);
  onnx::unless_zero(op, count - 1, norm, of_one);
}

}  // namespace

bool is_norm_of_one(const Model& model, const Node& node) {
  const auto sizes = normalised(model, node);
  return !sizes.empty() &&
         std::ranges::all_of(sizes, [](const Dim& size) { return size.is_one(); });
}

bool guard_norms_of_one(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_guarded = [&](const Node& node) { return may_be_refused(model, node); };
    if (std::ranges::none_of(graph.nodes, is_guarded)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (!is_guarded(node)) {
        graph.nodes.push_back(std::move(node));
        continue;
      }
      op.set_origin(model.origins[node.origin]);
      guard(op, node);
      graph.nodes.back().out = node.out;
    }
    return true;
  });
}

}  // namespace jaxport::target
