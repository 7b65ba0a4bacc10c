// SPDX-License-Identifier: Apache-2.0
#include "target/f64_transpose.h"

#include <algorithm>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "onnx/walk.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;

bool is_of_f64(const Model& model, const Node& node, std::string_view op) {
  if (node.op != op || !node.domain.empty()) return false;
  const auto& type = model.values[node.out[0]].type;
  return type && type->shape && type->dtype == DType::kF64;
}

bool has_f64_products(const Model& model) {
  bool found = false;
  onnx::for_each_graph(model.graph, [&](const Graph& graph) {
    found |= std::ranges::any_of(
        graph.nodes, [&](const Node& node) { return is_of_f64(model, node, "MatMul"); });
  });
  return found;
}

// A size of 0 in the shape of a Reshape is that of the operand, which may be 0 itself.
void transpose_with_one_more_dim(Graph& graph, Builder& op, const Node& node) {
  Ints order = *ints_attribute(node, "perm");
  Dims shape = *op.info(node.in[0]).type->shape;
  std::vector<std::int64_t> kept(order.size(), 0), more = kept;
  more.push_back(1);
  shape.push_back(1);
  order.push_back(static_cast<std::int64_t>(order.size()));
  const Value wide =
      op.call_with_shape("Reshape", {Value(&op, node.in[0]), op.ints(more)}, {}, shape);
  const Value moved = op.Transpose(wide, onnx::Args{{"perm", order}});
  op.call_with_shape("Reshape", {moved, op.ints(kept)}, {}, *op.info(node.out[0]).type->shape);
  graph.nodes.back().out = node.out;
}

}  // namespace

bool keep_f64_transposes(Model& model) {
  if (!has_f64_products(model)) return false;
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_merged = [&](const Node& node) {
      return is_of_f64(model, node, "Transpose") && ints_attribute(node, "perm").has_value();
    };
    if (std::ranges::none_of(graph.nodes, is_merged)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (is_merged(node)) {
        op.set_origin(model.origins[node.origin]);
        transpose_with_one_more_dim(graph, op, node);
      } else {
        graph.nodes.push_back(std::move(node));
      }
    }
    return true;
  });
}

}  // namespace jaxport::target
