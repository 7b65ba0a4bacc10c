// SPDX-License-Identifier: Apache-2.0
#include "target/every_graph.h"

#include "onnx/walk.h"

namespace jaxport::target {
namespace {

bool rewritten(onnx::Graph& graph, onnx::Builder& op, const RewriteGraph& rewrite) {
  bool changed = false;
  for (onnx::Node& node : graph.nodes) {
    onnx::for_each_subgraph(node, [&](onnx::Graph& inner) {
      onnx::Builder inner_op(op, inner);
      changed |= rewritten(inner, inner_op, rewrite);
    });
  }
  return rewrite(graph, op) || changed;
}

}  // namespace

bool rewrite_every_graph(onnx::Model& model, const RewriteGraph& rewrite) {
  onnx::Builder op(model, static_cast<int>(model.opset()), onnx::DTypeRule::kAny);
  return rewritten(model.graph, op, rewrite);
}

std::vector<bool> function_borders(const onnx::Model& model) {
  std::vector<bool> is_border;
  const auto add = [&](const std::vector<onnx::ValueId>& ids) {
    is_border.resize(model.values.size());
    for (onnx::ValueId id : ids) is_border[id] = true;
  };
  onnx::for_each_graph(model.graph, [&](const onnx::Graph& graph) {
    for (const onnx::Node& node : graph.nodes) {
      const onnx::Graph* body = onnx::open_body(node);
      if (body == nullptr) continue;
      for (const auto* ids : {&node.in, &node.out, &body->inputs, &body->outputs}) add(*ids);
    }
  });
  return is_border;
}

}  // namespace jaxport::target
