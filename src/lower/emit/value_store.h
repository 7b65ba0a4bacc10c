// SPDX-License-Identifier: Apache-2.0
// The values of a program while it is emitted, with their layouts.
//
// A value may exist in several layouts (variants): as produced, and as every conversion that was
// paid for left it. An operand is an edge together with the sizes of its consumer's labels;
// arrangements are in these labels. All values are values of `op`, those from graphs around it too:
// what is computed from them belongs to this graph, which may run seldom or never.
#pragma once

#include <span>
#include <vector>

#include "jaxport/error.h"
#include "lower/emit/cheapest.h"
#include "lower/emit/weights.h"
#include "lower/layout/conversions.h"
#include "lower/layout/facts.h"
#include "lower/layout/layout.h"
#include "lower/layout/plan.h"
#include "lower/rows/shape_values.h"
#include "onnx/builder.h"

namespace jaxport::lower {

// Emission met a value in a layout from which no conversion leads to the one that its user needs.
// The search for layouts then tries another choice; every other error reaches the user.
class NoConversion : public Error {
 public:
  explicit NoConversion(const axis::Node& value);
};

class ValueStore {
 public:
  struct Variant {
    onnx::Value value;
    Layout layout;  // in pieces of the node's axes
  };
  struct Priced {
    double price;
    Arrangement dims;
  };

  ValueStore(const Facts& facts, Conversions& conversions, onnx::Builder& op, ShapeValues& shapes)
      : facts_(facts),
        conversions_(conversions),
        op_(op),
        shapes_(shapes),
        weights_(facts, op),
        variants_(facts.order().size()) {}

  // --- results
  void define(const axis::Node& node, onnx::Value value, const Arrangement& arrangement);
  void define(const axis::Node& node, std::vector<Variant> variants);
  // Makes a variant with this layout, if a conversion is needed.
  void prepare(const axis::Node& node, const Layout& layout);

  // --- operands. Constants are stored in whatever arrangement is asked for, at no price.
  bool is_constant(const axis::Edge& edge) const { return facts_.is_constant(edge.node); }
  const std::vector<Variant>& variants(const axis::Node* node) const {
    return variants_[facts_.index(node)];
  }
  std::vector<Arrangement> arrangements(const axis::Edge& edge, const Dims& sizes) const;
  // What bring() to this arrangement would cost.
  double price(const axis::Edge& edge, const Dims& sizes, const Arrangement& to) const;
  // The cheapest arrangement for a broadcasting op, which may lack leading unit dims.
  Priced broadcastable(const axis::Edge& edge, const Dims& sizes, const Arrangement& to) const;
  onnx::Value bring(const axis::Edge& edge, const Dims& sizes, const Arrangement& to);
  // The same, but labels that the operand lacks are really there: repeated in constants, by Expand
  // otherwise.
  double price_full(const axis::Edge& edge, const Dims& sizes, const Arrangement& to) const;
  onnx::Value bring_full(const axis::Edge& edge, const Dims& sizes, const Arrangement& to);

  // --- what was paid for: conversions from now on are made for this node, or for the outputs
  // (nullptr).
  void set_consumer(const axis::Node* consumer) { consumer_ = consumer; }
  const std::vector<Paid>& paid() const { return paid_; }

 private:
  struct Conversion {
    double price = kNever;
    std::span<const Step> steps{};
    std::size_t variant = 0;
  };
  Conversion cheapest(const axis::Node* node, const Layout& to) const;
  Conversion cheapest(const axis::Edge& edge, const Dims& sizes, const Arrangement& to) const;
  onnx::Value converted(const axis::Node* node, const Conversion& way);

  const Facts& facts_;
  Conversions& conversions_;
  onnx::Builder& op_;
  ShapeValues& shapes_;
  Weights weights_;
  std::vector<std::vector<Variant>> variants_;  // by Facts::index
  const axis::Node* consumer_ = nullptr;
  std::vector<Paid> paid_;
};

}  // namespace jaxport::lower
