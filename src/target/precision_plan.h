// SPDX-License-Identifier: Apache-2.0
// Which nodes of a model compute in half precision, and which values are handed over in it.
#pragma once

#include <vector>

#include "onnx/ir.h"
#include "target/magnitude.h"
#include "target/precision.h"
#include "target/precision_numbers.h"
#include "target/precision_ops.h"

namespace jaxport::target {

class PrecisionPlan {
 public:
  PrecisionPlan(onnx::Model& model, const Target& target, const Precision& precision);

  // Whether the f32 operands and results of a node become halves.
  bool is_half(const onnx::Node& node) const;
  // Whether a value is handed over in half precision at the borders of bodies.
  bool is_half(onnx::ValueId id) const { return stored_half_[find(id)]; }
  // The same of a constant: its bytes in the file.
  bool is_stored_half(const onnx::Initializer& constant) const;

  bool is_f32(onnx::ValueId id) const;

 private:
  enum class Mode : std::uint8_t { kNone, kHalf, kFull, kFollows };
  struct Class {  // of values that are one dtype
    int half_uses = 0, full_uses = 0, half_results = 0, full_results = 0;
    bool is_large = false, is_carry = false;
    bool leaves_call = false;  // calls of one function are to stay equal, whatever is behind them
  };

  // Constants and inputs of the model do not bind the nodes behind them to their dtype.
  bool is_fixed(onnx::ValueId id) const { return is_fixed_[id]; }
  bool is_free(onnx::ValueId id) const { return is_f32(id) && !is_fixed(id); }
  void collect(const onnx::Graph& graph);
  void join(const onnx::Node& node);
  void unite(onnx::ValueId a, onnx::ValueId b);
  onnx::ValueId find(onnx::ValueId id) const;

  Mode first_mode(const onnx::Node& node);
  bool runs_in_half(const onnx::Node& node);
  bool may_be_half(const onnx::Node& node) const;
  void mark_statistics(const onnx::Node& node, const HalfConduct& conduct);
  void count(const onnx::Node& node);
  void count_fixed_operands(const onnx::Node& node);
  bool is_used_in_full_only(const onnx::Node& node) const;
  bool accumulates(const onnx::Node& node);
  bool make_light_nodes_full();
  void make_full(const onnx::Node& node);
  bool is_half_class(const Class& c) const;

  Class& class_of(onnx::ValueId id) { return classes_[find(id)]; }
  Mode mode(const onnx::Node& node) const;
  static onnx::ValueId key(const onnx::Node& node);

  onnx::Model& model_;
  const Target target_;
  const Precision precision_;
  const Magnitudes magnitudes_;
  const Numbers numbers_;
  std::vector<const onnx::Node*> nodes_;  // of all graphs, those of a body before its node
  std::vector<bool> is_fixed_, is_statistic_, stored_half_;  // by value
  std::vector<Mode> modes_;                                  // by a result of the node
  mutable std::vector<onnx::ValueId> parents_;               // by value
  std::vector<Class> classes_;                               // by value: that of find()
};

}  // namespace jaxport::target
