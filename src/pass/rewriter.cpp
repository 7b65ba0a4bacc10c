// SPDX-License-Identifier: Apache-2.0
#include "pass/rewriter.h"

#include <numeric>
#include <utility>

#include "onnx/walk.h"

namespace jaxport::pass {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

Rewriter::Rewriter(onnx::Model& model)
    : model_(model),
      stands_for_(model.values.size()),
      result_of_(model.values.size(), nullptr),
      is_output_(model.values.size(), false) {
  std::iota(stands_for_.begin(), stands_for_.end(), ValueId{0});
  onnx::for_each_graph(model.graph, [this](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (ValueId id : node.out) {
        if (id != kAbsent) result_of_[id] = &graph;
      }
    }
    for (ValueId id : graph.outputs) is_output_[id] = true;
  });
}

bool Rewriter::can_replace(ValueId from, ValueId to) const {
  if (!is_output_[from]) return true;
  return result_of_[to] != nullptr && result_of_[to] == result_of_[from] && !is_output_[to];
}

void Rewriter::replace(ValueId from, ValueId to) {
  stands_for_[from] = to;
  // What is known of a shape stays known, and an output has the one that the user declared.
  const auto has_shape = [&](ValueId id) {
    const auto& type = model_.values[id].type;
    return type && type->shape;
  };
  if (has_shape(from) && (is_output_[from] || !has_shape(to))) {
    model_.values[to].type = model_.values[from].type;
  }
  if (!is_output_[from]) return;
  is_output_[from] = false;
  is_output_[to] = true;
  model_.values[to].name = std::exchange(model_.values[from].name, "");
}

ValueId Rewriter::current(ValueId id) const {
  // A replacement is itself current when it is made, so chains are short.
  while (id != kAbsent && stands_for_[id] != id) id = stands_for_[id];
  return id;
}

void Rewriter::update_inputs(Node& node) const {
  for (ValueId& id : node.in) id = current(id);
}

void Rewriter::add(ValueId id, const Graph* graph) {
  for (auto next = static_cast<ValueId>(stands_for_.size()); next <= id; ++next) {
    stands_for_.push_back(next);
    result_of_.push_back(nullptr);
    is_output_.push_back(false);
  }
  result_of_[id] = graph;
}

void Rewriter::finish() {
  onnx::for_each_graph(model_.graph, [this](Graph& graph) {
    for (Node& node : graph.nodes) update_inputs(node);
    for (ValueId& id : graph.outputs) id = current(id);
  });
}

std::vector<std::uint32_t> use_counts(const onnx::Model& model) {
  std::vector<std::uint32_t> uses(model.values.size(), 0);
  onnx::for_each_graph(model.graph, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (ValueId id : node.in) {
        if (id != kAbsent) ++uses[id];
      }
    }
    for (ValueId id : graph.outputs) ++uses[id];
  });
  return uses;
}

void erase_nodes(Graph& graph, const std::vector<bool>& is_removed) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_removed[i]) continue;
    if (kept != i) graph.nodes[kept] = std::move(graph.nodes[i]);
    ++kept;
  }
  graph.nodes.resize(kept);
}

}  // namespace jaxport::pass
