// SPDX-License-Identifier: Apache-2.0
// Walking a model with its subgraphs.
#pragma once

#include "onnx/ir.h"

namespace jaxport::onnx {

// Attributes of a call that is to become a function: its body, and whether calls that differ in
// their weights only are to share it.
constexpr std::string_view kBody = "body", kShares = "shares";

// Calls visit(graph) for each subgraph of a node, in the order of its attributes.
template <class Visit>
void for_each_subgraph(const Node& node, Visit visit) {
  for (const Attribute& attr : node.attrs) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attr.value)) visit(**graph);
  }
}

// The body of a call that is to become a function (pass/functions.cpp); nullptr for all other
// nodes. Until then it is a subgraph: the inputs of the node are those of the body, which may also
// use what stands around it.
inline Graph* open_body(const Node& node) {
  const Attribute* body = node.domain.empty() ? nullptr : node.attr(kBody);
  const auto* graph = body ? std::get_if<std::shared_ptr<Graph>>(&body->value) : nullptr;
  return graph ? graph->get() : nullptr;
}

// Calls visit(graph) for a graph and then for all graphs inside it, in the order of their nodes.
template <class G, class Visit>
void for_each_graph(G& graph, const Visit& visit) {
  visit(graph);
  for (auto& node : graph.nodes) {
    for_each_subgraph(node, [&](G& inner) { for_each_graph(inner, visit); });
  }
}

// The same for the main graph and then for the body of each function.
template <class M, class Visit>
void for_each_graph_of(M& model, const Visit& visit) {
  for_each_graph(model.graph, visit);
  for (auto& function : model.functions) for_each_graph(function.body, visit);
}

}  // namespace jaxport::onnx
