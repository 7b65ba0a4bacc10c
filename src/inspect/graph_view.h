// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inspect/spec.h"
#include "onnx/ir.h"

namespace jaxport::inspect {

enum class GraphKind { kMain, kFunction, kBody };

// One graph of a model with what questions about it need: who uses a value, what is live.
class GraphView {
 public:
  // `name` is "top", "fn:domain:name" or, for a body, "top/Scan_0.body".
  GraphView(const onnx::Model& model, const onnx::Graph& graph, GraphKind kind, std::string name);

  GraphKind kind() const { return kind_; }
  const std::string& name() const { return name_; }
  const onnx::Graph& graph() const { return *graph_; }
  const onnx::Node& node(std::size_t index) const { return graph_->nodes[index]; }

  // Nodes that use a result of this one, each once, in the order of its results.
  const std::vector<std::size_t>& consumers(std::size_t node) const { return consumers_[node]; }
  bool is_live(std::size_t node) const { return live_[node]; }  // an output depends on it
  bool is_output(std::size_t node) const;
  std::vector<std::string> unused_inputs() const;

  // Sizes of the first result. nullopt: unknown, or a scalar (specifications have no word for it).
  std::optional<Sizes> shape_after(std::size_t node) const;
  Step step(std::size_t node) const { return {this->node(node).op, shape_after(node)}; }
  std::string describe(std::size_t node) const;  // "node 3 'dense/Gemm'"

  std::string_view name_of(onnx::ValueId id) const;  // "" when absent
  // The numbers of a constant, also behind Cast and ops that only change its shape, if there are at
  // most `largest`.
  std::optional<Numbers> constant(onnx::ValueId id, std::int64_t largest) const;

 private:
  void find_uses();
  void find_live();
  std::optional<Numbers> constant_at_depth(onnx::ValueId id, std::int64_t largest, int depth) const;

  const onnx::Model* model_;
  const onnx::Graph* graph_;
  GraphKind kind_;
  std::string name_;
  std::unordered_map<onnx::ValueId, std::size_t> producer_;
  std::vector<std::vector<onnx::ValueId>> uses_;  // by node: operands, and what its bodies capture
  std::vector<std::vector<std::size_t>> consumers_;
  std::vector<bool> live_;
};

// The main graph first, then functions and bodies of control flow where they are wanted.
std::vector<GraphView> views_of(const onnx::Model& model, bool functions, bool subgraphs);

// Whether one of the selectors of a specification ("top", "fn:domain:name", "domain:name", "name",
// "fn") names this graph.
bool is_selected(const std::vector<std::string>& selectors, const GraphView& view);

}  // namespace jaxport::inspect
