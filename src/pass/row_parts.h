// SPDX-License-Identifier: Apache-2.0
// Parts of a graph that treat tokens [B, T, N] one by one, so that they may be rows [B * T, N], and
// whether that makes the graph shorter.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::pass {

// What is known of all values, before anything is changed.
class RowFacts {
 public:
  explicit RowFacts(const onnx::Model& model);

  std::uint32_t uses(onnx::ValueId id) const { return uses_[id]; }
  const Dims* shape(onnx::ValueId id) const;  // nullptr: absent or unknown
  std::size_t rank(onnx::ValueId id) const { return shape(id)->size(); }
  // Computed, with several dims in front of the last one.
  bool is_tall(onnx::ValueId id) const;
  bool has_same_rows(onnx::ValueId a, onnx::ValueId b) const;
  bool is_vector(onnx::ValueId id) const { return shape(id) && rank(id) <= 1; }
  bool is_wide_float(onnx::ValueId id) const;
  // A Reshape that asks nothing of the dims of its operand.
  bool is_free_reshape(const onnx::Node& node) const;

 private:
  const onnx::Model& model_;
  std::vector<std::uint32_t> uses_;                 // by value
  std::vector<const onnx::Initializer*> constant_;  // by value
};

// Row-wise nodes that are joined by the values between them.
struct RowPart {
  // Products with a vector added, which will be Gemms, against Reshapes and what else is lost.
  std::int64_t sums = 0, price = 0;
  onnx::ValueId first = onnx::kAbsent;  // of the values that enter it
  // Shapes of the values that leave it, by their width, where a run has to compute them.
  std::map<std::int64_t, onnx::ValueId> shape_of_width;
  bool has_shapes = false;

  bool is_taken() const { return sums > price; }
};

// The parts of one graph.
class RowParts {
 public:
  RowParts(const RowFacts& known, const onnx::Graph& graph, std::size_t value_count);

  // The part of a node that is to be changed; nullptr otherwise.
  RowPart* taken(const onnx::Node& node);
  bool leaves(onnx::ValueId id) const { return known_.uses(id) > inside_[id]; }
  std::size_t sums() const;  // of all parts that are taken
  // How many dims of its values only a run tells.
  std::ptrdiff_t symbols(const RowPart& part) const;

 private:
  std::size_t index(const onnx::Node& node) const { return &node - graph_.nodes.data(); }
  bool is_row_wise(const onnx::Node& node) const;
  bool is_along_rows(const onnx::Node& norm) const;
  bool is_product_for(const onnx::Node* product, onnx::ValueId bias) const;
  bool find_sums();
  void leave_out_ends();
  bool shares_its_only_rows(const onnx::Node& node) const;
  void join();
  onnx::ValueId root(onnx::ValueId id);
  void weigh(const onnx::Node& node);
  void enter(RowPart& part, onnx::ValueId id);
  bool is_lone_sum(onnx::ValueId id) const;

  const RowFacts& known_;
  const onnx::Graph& graph_;
  std::vector<bool> in_part_, is_sum_;       // by node
  std::vector<const onnx::Node*> producer_;  // by value
  std::vector<std::uint32_t> inside_;        // by value: how often parts read it
  std::vector<std::uint32_t> reshaped_;      // by value: how often it is regrouped
  std::vector<onnx::ValueId> above_;         // by value: towards the one that stands for its part
  std::map<onnx::ValueId, RowPart> parts_;   // by the value that stands for it
  std::set<onnx::ValueId> entered_;
};

bool is_norm(const onnx::Node& node);  // LayerNormalization, RMSNormalization

}  // namespace jaxport::pass
