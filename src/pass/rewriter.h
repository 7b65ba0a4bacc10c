// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "onnx/ir.h"

namespace jaxport::pass {

// Replaces values in all graphs of a model. Replacements take effect at once for current() and in
// the model with finish().
class Rewriter {
 public:
  explicit Rewriter(onnx::Model& model);

  // Whether every use of `from` can become a use of `to`. An output must stay a result of its own
  // graph and keep its name, so `to` takes the name over; it cannot when it is an input, an
  // initializer, a value of an outer graph, or an output itself.
  bool can_replace(onnx::ValueId from, onnx::ValueId to) const;
  bool is_output(onnx::ValueId id) const { return is_output_[id]; }  // of any graph
  // Whether a node of the graph computes the value.
  bool is_result_of(onnx::ValueId id, const onnx::Graph& graph) const {
    return result_of_[id] == &graph;
  }
  void replace(onnx::ValueId from, onnx::ValueId to);  // only where can_replace() says so
  // What stands for `id` after all replacements so far.
  onnx::ValueId current(onnx::ValueId id) const;
  void update_inputs(onnx::Node& node) const;

  // A value that came after the rewriter: the result of a node of `graph`, or of none.
  void add(onnx::ValueId id, const onnx::Graph* graph);

  void finish();

 private:
  onnx::Model& model_;
  std::vector<onnx::ValueId> stands_for_;      // by value
  std::vector<const onnx::Graph*> result_of_;  // by value: the graph whose node computes it
  std::vector<bool> is_output_;                // by value
};

// How often each value is used, by nodes of all graphs and as their results.
std::vector<std::uint32_t> use_counts(const onnx::Model& model);

// Removes the nodes whose flag is set.
void erase_nodes(onnx::Graph& graph, const std::vector<bool>& is_removed);

}  // namespace jaxport::pass
