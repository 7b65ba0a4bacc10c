// SPDX-License-Identifier: Apache-2.0
#include "target/one_element_norm.h"

#include <algorithm>
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

// Whether one of the sizes that are normalised over is known to be more than 1.
bool may_be_one(const Dims& shape, std::int64_t axis) {
  const auto first = axis < 0 ? shape.end() + axis : shape.begin() + axis;
  return std::all_of(first, shape.end(),
                     [](const Dim& size) { return !size.is_static() || size.value() <= 1; });
}

bool is_refused(const Model& model, const Node& node) {
  if (node.op != "LayerNormalization" || !node.domain.empty() || node.out.size() != 1) return false;
  const auto& type = model.values[node.in[0]].type;
  return type && type->shape && may_be_one(*type->shape, int_attribute(node, "axis", -1));
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
  const Value sizes =
      op.Shape(Value(&op, node.in[0]), onnx::Args{{"start", int_attribute(node, "axis", -1)}});
  const Value count = sizes.shape()[0].is_one() ? sizes : op.ReduceMax(sizes);
  onnx::unless_zero(op, count - 1, norm, of_one);
}

}  // namespace

bool guard_norms_of_one(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_guarded = [&](const Node& node) { return is_refused(model, node); };
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
