// SPDX-License-Identifier: Apache-2.0
// An If whose condition is known is the branch that it takes.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "onnx/walk.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

class Branches {
 public:
  explicit Branches(const onnx::Model& model) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      for (const onnx::Initializer& constant : graph.initializers) {
        const bool is_overridable =
            std::ranges::find(graph.inputs, constant.value) != graph.inputs.end();
        const bool is_bool = constant.view.base.dtype == DType::kBool && constant.view.size() == 1;
        if (is_bool && !is_overridable) {
          unsorted_conditions_[constant.value] = materialise(constant.view).at(0) != 0;
        }
      }
    });
  }

  std::size_t take(Graph& graph) {
    std::size_t taken = 0;
    std::vector<Node> nodes;
    for (Node& node : std::exchange(graph.nodes, {})) {
      onnx::for_each_subgraph(node, [&](Graph& inner) { taken += take(inner); });
      const Graph* branch = known_branch(node);
      if (branch == nullptr) {
        nodes.push_back(std::move(node));
        continue;
      }
      move_into(graph, nodes, node, *branch);
      ++taken;
    }
    graph.nodes = std::move(nodes);
    return taken;
  }

 private:
  const Graph* known_branch(const Node& node) const {
    if (node.op != "If" || !node.domain.empty() || node.in.size() != 1) return nullptr;
    const auto condition = unsorted_conditions_.find(node.in[0]);
    if (condition == unsorted_conditions_.end()) return nullptr;
    const onnx::Attribute* attr = node.attr(condition->second ? "then_branch" : "else_branch");
    const auto* graph = attr ? std::get_if<std::shared_ptr<Graph>>(&attr->value) : nullptr;
    const bool fits =
        graph && (*graph)->inputs.empty() && (*graph)->outputs.size() == node.out.size();
    return fits ? graph->get() : nullptr;
  }

  static void move_into(Graph& graph, std::vector<Node>& nodes, const Node& node,
                        const Graph& branch) {
    for (const onnx::Initializer& constant : branch.initializers) {
      graph.initializers.push_back(constant);
    }
    for (const Node& inner : branch.nodes) nodes.push_back(inner);
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i] == kAbsent) continue;
      Node identity;
      identity.op = "Identity";
      identity.in = {branch.outputs[i]};
      identity.out = {node.out[i]};
      nodes.push_back(std::move(identity));
    }
  }

  std::unordered_map<ValueId, bool> unsorted_conditions_;
};

}  // namespace

std::size_t take_known_branches(onnx::Model& model) { return Branches(model).take(model.graph); }

}  // namespace jaxport::pass
