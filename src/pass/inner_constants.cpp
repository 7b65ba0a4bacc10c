// SPDX-License-Identifier: Apache-2.0
// A constant that one subgraph alone reads becomes a constant of that subgraph: ONNX Runtime packs
// the weights of products for those, and not for what a body takes from around it.
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx/walk.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Initializer;
using onnx::Model;
using onnx::Node;
using onnx::ValueId;

class InnerConstants {
 public:
  std::size_t run(Graph& graph) {
    find_readers(graph);
    std::size_t moved = 0;
    std::erase_if(graph.initializers, [&](Initializer& constant) {
      const auto reader = reader_.find(constant.value);
      if (reader == reader_.end() || reader->second == nullptr) return false;
      reader->second->initializers.push_back(std::move(constant));
      ++moved;
      return true;
    });
    for (const Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [&](Graph& inner) { moved += InnerConstants().run(inner); });
    }
    return moved;
  }

 private:
  void find_readers(const Graph& graph) {
    for (const Initializer& constant : graph.initializers) constants_.insert(constant.value);
    // The default of an input makes the input optional.
    for (ValueId id : graph.inputs) constants_.erase(id);
    if (constants_.empty()) return;
    read_all(graph.outputs, nullptr);
    for (const Node& node : graph.nodes) {
      read_all(node.in, nullptr);
      onnx::for_each_subgraph(node, [&](Graph& inner) {
        onnx::for_each_graph(std::as_const(inner), [&](const Graph& some) {
          for (const Node& reading : some.nodes) read_all(reading.in, &inner);
          read_all(some.outputs, &inner);
        });
      });
    }
  }

  void read_all(const std::vector<ValueId>& ids, Graph* by) {
    for (ValueId id : ids) {
      if (!constants_.contains(id)) continue;
      const auto [reader, is_first] = reader_.emplace(id, by);
      if (!is_first && reader->second != by) reader->second = nullptr;
    }
  }

  std::unordered_set<ValueId> constants_;       // of the graph; looked up, never walked
  std::unordered_map<ValueId, Graph*> reader_;  // nullptr: the graph itself, or several subgraphs
};

}  // namespace

std::size_t move_constants_inwards(Model& model) { return InnerConstants().run(model.graph); }

}  // namespace jaxport::pass
