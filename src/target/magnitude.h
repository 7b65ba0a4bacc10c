// SPDX-License-Identifier: Apache-2.0
// How large the integers of a model can get, from constants, shapes and casts.
#pragma once

#include <vector>

#include "onnx/ir.h"

namespace jaxport::target {

// The bits that values of an integer dtype need: all x are in [-2^bits, 2^bits).
int value_bits(DType dtype);

class Magnitudes {
 public:
  explicit Magnitudes(const onnx::Model& model);
  // A bound for the elements of a value; more than 64 for what is no integer.
  int bits(onnx::ValueId id) const { return bits_[id]; }

 private:
  void visit(const onnx::Graph& graph);
  int bits_of(const onnx::Node& node) const;

  const onnx::Model& model_;
  std::vector<int> bits_;  // by value
};

}  // namespace jaxport::target
