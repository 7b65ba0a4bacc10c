// SPDX-License-Identifier: Apache-2.0
// Rules that look at one node and at what feeds it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/attributes.h"
#include "onnx/ir.h"
#include "pass/rewriter.h"

namespace jaxport::pass {

// What a rule may ask and change.
class Local {
 public:
  explicit Local(onnx::Model& model);

  // --- facts
  const onnx::TensorType* type(onnx::ValueId id) const;  // nullptr: unknown
  const Dims* shape(onnx::ValueId id) const;
  bool same_type(onnx::ValueId a, onnx::ValueId b) const;  // both known, and equal
  std::int64_t opset() const { return model_.opset(); }
  // The op of ai.onnx with this name that computes the value, in this graph or around it.
  const onnx::Node* producer(onnx::ValueId id, std::string_view op) const;
  const onnx::Node* producer(onnx::ValueId id) const;  // any op of ai.onnx
  bool is_used_once(onnx::ValueId id) const;           // outputs of a graph are uses too
  bool is_used(onnx::ValueId id) const;
  // The op of this graph that computes the value, when nobody else uses it: a rule may `take` it.
  const onnx::Node* own_producer(onnx::ValueId id) const;
  const onnx::Node* own_producer(onnx::ValueId id, std::string_view op) const;
  // A constant that nobody can override.
  const onnx::Initializer* constant(onnx::ValueId id) const;
  std::optional<Tensor> content(onnx::ValueId id) const;  // of one of at most 1024 elements
  std::optional<Ints> ints(onnx::ValueId id) const;
  std::optional<double> uniform(onnx::ValueId id) const;  // the one value of all elements

  // --- changes
  onnx::ValueId add_constant(Tensor tensor);
  onnx::ValueId add_weight(StridedView view, Shape shape);
  // Puts a node with one result in front of the one at hand.
  onnx::ValueId add_node(onnx::Node node, onnx::TensorType type);
  // Makes these values the results of the node at hand, which goes. False when an output of a graph
  // cannot be one of them. Results that are absent or unused are not looked at.
  bool replace(const onnx::Node& node, std::span<const onnx::ValueId> with);
  // The node at hand does what its own producer did, which goes.
  void take(const onnx::Node& producer);
  bool replace(const onnx::Node& node, onnx::ValueId with) { return replace(node, {&with, 1}); }

 private:
  friend std::size_t apply_rules(onnx::Model& model, std::span<const struct LocalRule> rules);

  void run(onnx::Graph& graph, std::span<const struct LocalRule> rules);
  void apply(onnx::Node& node, std::span<const struct LocalRule> rules);
  void count_uses(const onnx::Graph& graph);
  void remember(const onnx::Initializer& constant);
  void keep(onnx::Node node);
  onnx::ValueId add_value(onnx::TensorType type, const onnx::Graph* graph);

  onnx::Model& model_;
  Rewriter rewriter_;
  std::vector<std::uint32_t> uses_;                 // by value
  std::vector<const onnx::Node*> producer_;         // by value
  std::vector<bool> is_input_;                      // by value
  std::vector<const onnx::Initializer*> constant_;  // by value
  std::unordered_set<const onnx::Node*> unsorted_taken_;
  std::unordered_map<onnx::ValueId, Tensor> mutable unsorted_contents_;
  onnx::Graph* graph_ = nullptr;
  std::deque<onnx::Node>* done_ = nullptr;
  std::deque<onnx::Initializer>* added_ = nullptr;  // behind those of the graph
  bool is_replaced_ = false;
  std::size_t changes_ = 0;
};

// A rule changes the node in place or replaces it, and says whether it did.
struct LocalRule {
  std::string_view op;
  bool (*apply)(Local&, onnx::Node&);
  std::string_view behind = {};  // nothing to do in models without this op; empty: any
};
// `rules` are sorted by op. Returns how many changes they made.
std::size_t apply_rules(onnx::Model& model, std::span<const LocalRule> rules);

// A node of ai.onnx without results yet.
onnx::Node make_node(std::string_view op, std::vector<onnx::ValueId> in,
                     std::vector<onnx::Attribute> attributes = {});
// An axis counted from the front; nullopt when there is no such axis.
std::optional<std::size_t> from_front(std::int64_t axis, std::size_t rank);

}  // namespace jaxport::pass
