// SPDX-License-Identifier: Apache-2.0
// Which numbers of a model half precision can hold.
#pragma once

#include <unordered_map>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::target {

class Numbers {
 public:
  Numbers(const onnx::Model& model, DType half);

  // Whether an f32 constant can be rounded: no number of it is large, and not all are tiny (an
  // epsilon of 1e-6 has two digits in f16).
  bool fits(onnx::ValueId constant) const;
  // Whether a value may be beyond what half precision tells apart, because of a constant such as
  // -1e9 or of integers such as positions. Large activations are not foreseen.
  bool is_large(onnx::ValueId id) const { return is_large_[id]; }

 private:
  bool visit(const onnx::Graph& graph);  // whether another value turned out to be large
  bool visit(const onnx::Node& node);
  bool has_large_operand(const onnx::Node& node) const;
  bool mark(onnx::ValueId id);
  bool is_f32(onnx::ValueId id) const;

  const onnx::Model& model_;
  DType half_;
  std::vector<bool> is_large_;                             // by value
  std::unordered_map<onnx::ValueId, bool> unsorted_fits_;  // of constants
};

}  // namespace jaxport::target
