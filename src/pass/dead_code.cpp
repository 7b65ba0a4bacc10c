// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "onnx/walk.h"
#include "pass/dead_results.h"
#include "pass/pass.h"
#include "pass/rewriter.h"
#include "pass/understand.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

// Marks what the outputs need, from the last node to the first. A subgraph is visited where its
// node stands, so that it marks the outer values it uses before their producers are reached.
class DeadCode {
 public:
  explicit DeadCode(const onnx::Model& model) : is_needed_(model.values.size(), false) {}

  std::size_t sweep(Graph& graph) {
    for (ValueId id : graph.outputs) is_needed_[id] = true;
    std::size_t removed = 0;
    std::vector<bool> is_removed(graph.nodes.size(), false);
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      if (keep(graph.nodes[i], removed)) continue;
      is_removed[i] = true;
      ++removed;
    }
    erase_nodes(graph, is_removed);
    // The default of an input makes the input optional, used or not.
    const std::unordered_set<ValueId> inputs(graph.inputs.begin(), graph.inputs.end());
    return removed + std::erase_if(graph.initializers, [&](const onnx::Initializer& constant) {
             return !is_needed_[constant.value] && !inputs.contains(constant.value);
           });
  }

 private:
  bool keep(Node& node, std::size_t& removed) {
    const bool is_needed = std::ranges::any_of(
        node.out, [this](ValueId id) { return id != kAbsent && is_needed_[id]; });
    if (!is_needed && !node.domain.starts_with(kForeign)) return false;
    removed += drop_dead_results(node, is_needed_);
    onnx::for_each_subgraph(node, [&](Graph& inner) { removed += sweep(inner); });
    removed += drop_dead_operands(node, is_needed_);
    for (ValueId id : node.in) {
      if (id != kAbsent) is_needed_[id] = true;
    }
    return true;
  }

  std::vector<bool> is_needed_;  // by value
};

}  // namespace

std::size_t remove_dead_code(onnx::Model& model) { return DeadCode(model).sweep(model.graph); }

}  // namespace jaxport::pass
