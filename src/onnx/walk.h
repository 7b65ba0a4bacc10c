// SPDX-License-Identifier: Apache-2.0
// Walking a model with its subgraphs.
#pragma once

#include "onnx/ir.h"

namespace jaxport::onnx {

// Calls visit(graph) for each subgraph of a node, in the order of its attributes.
template <class Visit>
void for_each_subgraph(const Node& node, Visit visit) {
  for (const Attribute& attr : node.attrs) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attr.value)) visit(**graph);
  }
}

// Calls visit(graph) for a graph and then for all graphs inside it, in the order of their nodes.
template <class G, class Visit>
void for_each_graph(G& graph, const Visit& visit) {
  visit(graph);
  for (auto& node : graph.nodes) {
    for_each_subgraph(node, [&](G& inner) { for_each_graph(inner, visit); });
  }
}

}  // namespace jaxport::onnx
