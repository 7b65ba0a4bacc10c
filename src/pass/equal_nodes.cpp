// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "onnx/equal.h"
#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"
#include "support/hash_index.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;

class EqualNodes {
 public:
  explicit EqualNodes(onnx::Model& model) : rewriter_(model) {}

  std::size_t run(Graph& graph) {
    const std::size_t merged = merge(graph);
    rewriter_.finish();
    return merged;
  }

 private:
  // Nodes of enclosing graphs that stand earlier may be used in place of those of `graph`.
  std::size_t merge(Graph& graph) {
    std::size_t merged = 0;
    std::vector<bool> is_removed(graph.nodes.size(), false);
    const std::size_t outside = seen_.size();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      Node& node = graph.nodes[i];
      rewriter_.update_inputs(node);
      onnx::for_each_subgraph(node, [&](Graph& inner) { merged += merge(inner); });
      if (!onnx::is_repeatable(node)) continue;
      const std::uint64_t hash = onnx::hash_call(node);
      if (merge_into_earlier(node, hash)) {
        is_removed[i] = true;
        ++merged;
      } else {
        seen_.add(hash, &node);
      }
    }
    seen_.shrink(outside);
    erase_nodes(graph, is_removed);
    return merged;
  }

  bool merge_into_earlier(const Node& node, std::uint64_t hash) {
    const Node* const* found = seen_.find(hash, [&](const Node* earlier) {
      return onnx::same_call(*earlier, node) && can_replace(node, *earlier);
    });
    if (found == nullptr) return false;
    for (std::size_t k = 0; k < node.out.size(); ++k) {
      if (node.out[k] != kAbsent) rewriter_.replace(node.out[k], (*found)->out[k]);
    }
    return true;
  }

  bool can_replace(const Node& node, const Node& earlier) const {
    for (std::size_t k = 0; k < node.out.size(); ++k) {
      if (node.out[k] == kAbsent) continue;
      if (earlier.out[k] == kAbsent || !rewriter_.can_replace(node.out[k], earlier.out[k])) {
        return false;
      }
    }
    return true;
  }

  Rewriter rewriter_;
  HashIndex<const Node*> seen_;
};

}  // namespace

std::size_t merge_equal_nodes(onnx::Model& model) { return EqualNodes(model).run(model.graph); }

}  // namespace jaxport::pass
