// SPDX-License-Identifier: Apache-2.0
// How nodes with constant operands are computed.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::pass {

// A node with constant operands, and the type of its result.
struct FoldCall {
  const onnx::Node& node;
  std::vector<Tensor> in;
  DType dtype;
  Shape shape;
};
// The result; nullopt leaves the node as it is.
using Fold = std::optional<Tensor> (*)(const FoldCall&);

struct FoldRow {
  std::string_view op;
  Fold fold;
};
// Arithmetic of floats, choices and parts of tensors; sorted by op.
std::span<const FoldRow> number_rows();

Ints row_major_strides(const Shape& shape);
Tensor broadcast(const Tensor& x, const Shape& shape);
// nullopt when a number does not fit.
std::optional<Tensor> integers(DType dtype, const Shape& shape, const Ints& values);

}  // namespace jaxport::pass
