// SPDX-License-Identifier: Apache-2.0
#include "target/web_border.h"

#include <algorithm>
#include <utility>

#include "onnx/builder.h"

namespace jaxport::target {
namespace {

using onnx::Model;
using onnx::Node;
using onnx::ValueId;

// The same value as f32, which takes the name.
ValueId as_f32(Model& model, ValueId id) {
  onnx::ValueInfo& inner = model.values[id];
  onnx::TensorType type = *inner.type;
  type.dtype = DType::kF32;
  std::string name = std::exchange(inner.name, "");
  model.values.push_back({std::move(type), std::move(name)});
  return static_cast<ValueId>(model.values.size() - 1);
}

Node cast(const Model& model, ValueId from, ValueId to) {
  Node node;
  node.op = "Cast";
  node.in = {from};
  node.out = {to};
  node.attrs = {onnx::Arg("to", model.values[to].type->dtype).attribute};
  return node;
}

}  // namespace

bool is_unknown_to_javascript(const Model& model, ValueId id) {
  const auto& type = model.values[id].type;
  if (!type || !is_float(type->dtype)) return false;
  return type->dtype == DType::kBF16 || byte_width(type->dtype) == 1;
}

void narrow_border(Model& model) {
  onnx::Graph& graph = model.graph;
  std::vector<Node> first;
  for (ValueId& id : graph.inputs) {
    if (!is_unknown_to_javascript(model, id)) continue;
    const ValueId outer = as_f32(model, id);
    first.push_back(cast(model, outer, id));
    id = outer;
  }
  graph.nodes.insert(graph.nodes.begin(), first.begin(), first.end());
  for (ValueId& id : graph.outputs) {
    if (!is_unknown_to_javascript(model, id)) continue;
    const ValueId outer = as_f32(model, id);
    graph.nodes.push_back(cast(model, id, outer));
    id = outer;
  }
}

}  // namespace jaxport::target
