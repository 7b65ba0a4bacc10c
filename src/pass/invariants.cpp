// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "onnx/equal.h"
#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Initializer;
using onnx::Node;
using onnx::ValueId;

// Which nodes may run where a loop that takes no step leaves them out.
using MayRun = bool (*)(const onnx::Model& model, const Node& node);

// What jaxport writes does not fail: divisors and indices are guarded.
bool always(const onnx::Model&, const Node&) { return true; }

// The others end the run, for what their operands hold.
bool cannot_fail(const onnx::Model& model, const Node& node) {
  constexpr std::string_view kOps[] = {"AveragePool",  "Compress",     "Conv",   "ConvTranspose",
                                       "DepthToSpace", "Expand",       "Gather", "GatherElements",
                                       "GatherND",     "MaxPool",      "OneHot", "Pad",
                                       "Range",        "Reshape",      "Resize", "ScatterElements",
                                       "ScatterND",    "SpaceToDepth", "Split",  "Squeeze",
                                       "Tile",         "TopK"};
  static_assert(std::ranges::is_sorted(kOps));
  const auto& type = model.values[node.out[0]].type;
  if (node.op == "Div" || node.op == "Mod") return type && !is_integer(type->dtype);
  return !std::ranges::binary_search(kOps, node.op);
}

// A loop body from which nodes are moved to the graph around it.
class Body {
 public:
  Body(const onnx::Model& model, Graph& body, MayRun may_run)
      : model_(model),
        body_(body),
        may_run_(may_run),
        outputs_(body.outputs.begin(), body.outputs.end()) {
    inside_.insert(body.inputs.begin(), body.inputs.end());
  }

  // Moves what every step computes alike to the end of `outer` and its constants into it.
  std::size_t hoist_into(Graph& outer, std::vector<Node>& nodes) {
    std::vector<bool> is_removed(body_.nodes.size(), false);
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      Node& node = body_.nodes[i];
      if (is_invariant(node)) {
        hoisted_inputs_.insert(node.in.begin(), node.in.end());
        nodes.push_back(std::move(node));
        is_removed[i] = true;
      } else {
        inside_.insert(node.out.begin(), node.out.end());
      }
    }
    move_constants(outer);
    erase_nodes(body_, is_removed);
    return static_cast<std::size_t>(std::ranges::count(is_removed, true));
  }

 private:
  // An output must stay a result of its own graph.
  bool is_invariant(const Node& node) const {
    return onnx::is_repeatable(node) && !node.in.empty() && may_run_(model_, node) &&
           std::ranges::none_of(node.in, [&](ValueId id) { return inside_.contains(id); }) &&
           std::ranges::none_of(node.out, [&](ValueId id) { return outputs_.contains(id); });
  }

  void move_constants(Graph& outer) {
    std::erase_if(body_.initializers, [&](Initializer& constant) {
      if (!hoisted_inputs_.contains(constant.value)) return false;
      outer.initializers.push_back(std::move(constant));
      return true;
    });
  }

  const onnx::Model& model_;
  Graph& body_;
  MayRun may_run_;
  std::unordered_set<ValueId> inside_, outputs_, hoisted_inputs_;  // looked up, never walked
};

std::size_t hoist(const onnx::Model& model, Graph& graph, MayRun may_run) {
  std::size_t hoisted = 0;
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    onnx::for_each_subgraph(node, [&](Graph& inner) {
      hoisted += hoist(model, inner, may_run);
      const bool repeats = node.domain.empty() && (node.op == "Loop" || node.op == "Scan");
      if (repeats) hoisted += Body(model, inner, may_run).hoist_into(graph, nodes);
    });
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return hoisted;
}

}  // namespace

std::size_t hoist_invariants(onnx::Model& model) { return hoist(model, model.graph, always); }

std::size_t hoist_safe_invariants(onnx::Model& model) {
  return hoist(model, model.graph, cannot_fail);
}

}  // namespace jaxport::pass
