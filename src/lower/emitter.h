// SPDX-License-Identifier: Apache-2.0
// Emission: axis nodes -> ONNX nodes in topological order, each in the cheapest of its candidate
// layouts.
//
// A value may exist in several layouts (variants): as produced, and as every conversion that was
// paid for left it. Candidates of a node are the layouts that its operands already have, plus the
// hint; the price of a candidate is what its operands' conversions cost now plus what the
// conversion of the result to the hint will cost. So a tie converts early, and siblings find the
// variant.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "jaxport/error.h"
#include "lower/ctx.h"
#include "lower/facts.h"
#include "lower/hints.h"
#include "lower/label_set.h"
#include "lower/layout.h"
#include "lower/plan.h"
#include "lower/shape_values.h"
#include "onnx/builder.h"

namespace jaxport::lower {

struct RopeForm;
struct RopeLabels;

// Emission met a value in a layout from which no conversion leads to the one that its user needs.
// The search for layouts tries another choice then; of any other error the user hears.
class NoConversion : public Error {
 public:
  explicit NoConversion(const axis::Node& value);
};

// How the row wants the operands of a positional primitive, and how it delivers the results.
Order order_of(const axis::Node& node, const Row& row);

class Emitter {
 public:
  // Emits the program of `plan` into the graph of `builder`, with these layouts in place of its
  // own.
  Emitter(const Plan& plan, const Choice& choice, onnx::Builder& builder, ShapeValues& shapes);

  // Emits the program as a whole model.
  void run();
  // Emits the program as a part of a graph. Arguments and results have all dims in jaxpr order.
  Values run(const Values& arguments);
  // The conversions that emission had to make.
  const std::vector<Paid>& paid() const { return paid_; }

 private:
  using Node = axis::Node;
  using Edge = axis::Edge;
  using Labels = axis::Labels;
  struct Variant {
    Value value;
    Layout layout;  // in pieces of the node's axes
  };
  struct Conversion {
    double price;
    std::vector<Step> steps;
    std::size_t variant;
  };

  // --- emitter.cpp: values and conversions
  void define_inputs(const Values& arguments);
  void emit(const Node& node);
  void make_ready(const Node& node);
  Value output(std::size_t i);
  void define(const Node& node, Value value, const Arrangement& arrangement);
  bool is_constant(const Edge& edge) const { return facts_.is_constant(edge.node); }
  std::vector<Variant>& variants(const Node* node) { return variants_[facts_.index(node)]; }
  const std::vector<Variant>& variants(const Node* node) const {
    return variants_[facts_.index(node)];
  }
  // How the existing variants of an operand look in the labels of its consumer.
  std::vector<Arrangement> arrangements(const Edge& edge, const Dims& sizes) const;
  Conversion cheapest(const Node* node, const Layout& to) const;
  Conversion cheapest(const Edge& edge, const Dims& sizes, const Arrangement& to) const;
  Value converted(const Node* node, Conversion way);
  double price(const Edge& edge, const Dims& sizes, const Arrangement& to) const;
  // Price and arrangement of an operand of a broadcasting op, which may lack leading unit dims.
  struct Priced {
    double price;
    Arrangement dims;
  };
  Priced broadcastable(const Edge& edge, const Dims& sizes, const Arrangement& to) const;
  Value bring(const Edge& edge, const Dims& sizes, const Arrangement& to);
  // As bring, but labels that the operand lacks are really there: repeated in constants, by Expand
  // otherwise.
  Value bring_full(const Edge& edge, const Dims& sizes, const Arrangement& to);
  Value constant(const Edge& edge, const Dims& sizes, const Arrangement& to, bool full);
  std::string weight_name(const Node& node);

  // --- hints
  const std::optional<Hint>& hint(const Node& node) const {
    return choice_.hints[facts_.index(&node)];
  }
  // The hint restricted to `labels`; nullopt without one.
  std::optional<Arrangement> wanted(const Node& node, const LabelSet& labels) const;
  std::optional<axis::Labels> wanted_order(const Node& node, const LabelSet& labels) const;
  // What it will cost that the result is not in the layout that its consumers wish.
  double regret(const Node& node, const Arrangement& result) const;

  // --- emit_pointwise.cpp
  Arrangement aligned(const Node& node, const axis::Labels& labels,
                      std::optional<axis::Labels> order);
  struct Aligned {
    Value value;
    std::size_t rank;
  };
  Aligned operand(const Node& node, std::size_t i, const Arrangement& to, bool lift_rank = false);
  // All operands of a broadcasting node in one arrangement, which loses leading unit dims that
  // nobody has.
  std::pair<Values, Arrangement> broadcast_operands(const Node& node);
  void emit_pointwise(const Node& node);

  // --- emit_reduce.cpp
  bool keeps_dims(const Node& node, const Arrangement& operand) const;
  void emit_reduce(const Node& node);
  void emit_softmax(const Node& node, std::string_view op);

  // --- emit_norm.cpp
  void emit_norm(const Node& node);
  void emit_group_norm(const Node& node);
  void emit_instance_norm(const Node& node);
  Value instance_norm(const Node& node, const Values& operands);
  std::vector<Arrangement> norm_candidates(const Node& node) const;

  // --- emit_contract.cpp
  struct Product;
  void emit_contract(const Node& node);
  double missing_batch_dim(const Node& node, const Arrangement& wish,
                           const Arrangement& result) const;
  void consider_constant_weight(const Node& node, std::size_t x, std::vector<Product>& ways);
  void consider_constant_left(const Node& node, std::size_t weight, const Arrangement& x,
                              Arrangement left, std::vector<Product>& ways);
  void consider_two_activations(const Node& node, std::size_t x, std::vector<Product>& ways);
  void emit_outer_product(const Node& node);

  // --- emit_attention.cpp
  void emit_attention(const Node& node);
  struct AttentionPlan;
  AttentionPlan attention_plan(const Node& node) const;
  double attention_price(const AttentionPlan& plan) const;
  Value attention_bias(const AttentionPlan& plan);

  // --- emit_rope.cpp
  void emit_rope(const Node& node);
  double rope_price(const Node& node, const RopeLabels& labels, const RopeForm& form) const;
  Value position_ids(const Dim& batch, const Dim& time);

  // --- emit_resize.cpp
  void emit_resize(const Node& node);
  bool is_resizable(const Edge& edge) const;
  Value repeated(const Edge& edge, const Dims& sizes, const Arrangement& to, const Ints& times);

  // --- emit_move.cpp
  Value range(const Dim& size);
  void emit_iota(const Node& node);
  void emit_eye(const Node& node);
  void emit_pick(const Node& node);
  void emit_slice(const Node& node);
  Value end_of(const Node& slice, const Dim& rest);  // where ONNX's Slice ends
  void emit_stack(const Node& node);
  void emit_concat(const Node& node);
  void emit_relayout(const Node& node);

  // --- emit_dimwise.cpp
  bool emit_dimwise(const Node& node, const Row& row);  // whether the row allows it

  // --- emit_prim.cpp
  void emit_prim(const Node& node);
  Values lower_prim(const Node& node, const Row& row, const Order& order);
  Values run_lowering(const Node& node, const Row& row, Ctx& ctx) const;
  Values emit_region(const Node& node, std::size_t region, onnx::Builder& builder,
                     const Values& arguments);
  const Row* row_for(const Node& node) const;

  // --- fold_bias.cpp
  struct Bias {
    const Node* add;       // the only user of the convolution
    const Edge* constant;  // what it adds
    Labels features;       // in labels of `add`
  };
  std::optional<Bias> bias_of(const Node& conv) const;
  bool take_biased(const Node& add);  // the convolution before it has added the bias

  void enter(const Node& node);  // sets the origin of the nodes to come

  const Plan& plan_;
  const Facts& facts_;
  const Choice& choice_;
  onnx::Builder& op_;
  ShapeValues& shapes_;
  std::vector<std::vector<Variant>> variants_;  // by Facts::index
  const Node* current_ = nullptr;               // nullptr: the outputs
  std::vector<Paid> paid_;
  std::map<std::string, Value> constants_;  // by node and view
  std::unordered_set<std::string> weight_names_;
  std::map<std::string, Values> prim_results_;        // by primitive instance
  std::vector<std::pair<Dims, Value>> position_ids_;  // of all rotary embeddings, by shape
};

}  // namespace jaxport::lower
