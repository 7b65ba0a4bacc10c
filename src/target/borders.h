// SPDX-License-Identifier: Apache-2.0
// Which values are the same one on both sides of the border of a body.
#pragma once

#include <cstddef>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::target {

// A body of If, Loop or Scan, or that of a call that is to become a function.
struct Border {
  const onnx::Node* node;
  const onnx::Graph* body;
  std::ptrdiff_t carries;  // so many outputs are carried
  std::ptrdiff_t carry;    // output i to input i + carry
  std::ptrdiff_t result;   // output i is result i + result of the node

  // Input i is operand i of the node, but for the number of the step.
  onnx::ValueId given(std::size_t input) const;
  onnx::ValueId carried(std::size_t output) const;  // the input of the next step; kAbsent: none
  onnx::ValueId result_of(std::size_t output) const;
};

std::vector<Border> borders(const onnx::Node& node);  // in the order of its bodies

}  // namespace jaxport::target
