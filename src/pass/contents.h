// SPDX-License-Identifier: Apache-2.0
// What is known of small whole numbers, such as sizes: each element as an expression over the sizes
// of the model's inputs.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::pass {

class Contents {
 public:
  explicit Contents(const onnx::Model& model);

  void add(const onnx::Initializer& constant);
  // Nodes are visited in the order of the graph; the types of their results may be unknown yet.
  void visit(const onnx::Node& node);

  // The elements of a tensor of rank 0 or 1; nullptr: not known.
  const Dims* of(onnx::ValueId id) const;
  bool is_scalar(onnx::ValueId id) const;
  // The same as a tensor, when no symbol is in it.
  std::optional<Tensor> tensor(onnx::ValueId id) const;

 private:
  struct Elements {
    Dims values;
    DType dtype;
    bool is_scalar;
  };
  friend struct ContentRules;

  const Elements* find(onnx::ValueId id) const;
  std::optional<Elements> evaluate(const onnx::Node& node) const;

  const onnx::Model& model_;
  std::vector<bool> is_input_;  // by value: what the caller may override
  std::unordered_map<onnx::ValueId, Elements> unsorted_elements_;
};

}  // namespace jaxport::pass
