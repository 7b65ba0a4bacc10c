// SPDX-License-Identifier: Apache-2.0
// A result that is a constant is its initializer.
#include <algorithm>

#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
using onnx::Graph;
using onnx::Node;
using onnx::ValueId;

// Not in bodies of control flow, whose results ONNX Runtime expects from nodes.
std::size_t name_constant_results(onnx::Model& model) {
  Graph& graph = model.graph;
  const std::vector<std::uint32_t> uses = use_counts(model);
  std::vector<bool> is_removed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != "Identity" || !node.domain.empty()) continue;
    const ValueId from = node.in[0], to = node.out[0];
    const auto result = std::ranges::find(graph.outputs, to);
    const bool is_constant =
        std::ranges::find(graph.initializers, from, &onnx::Initializer::value) !=
        graph.initializers.end();
    if (!is_constant || result == graph.outputs.end() || uses[from] != 1 || uses[to] != 1) continue;
    model.values[from].name = std::move(model.values[to].name);
    *result = from;
    is_removed[i] = true;
  }
  erase_nodes(graph, is_removed);
  return static_cast<std::size_t>(std::ranges::count(is_removed, true));
}

}  // namespace jaxport::pass
