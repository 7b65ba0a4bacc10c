// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "onnx/builder.h"

namespace jaxport::target {

// Which operand of a Mul or Div is a constant of one element (of a Div only the divisor); nullopt
// when the node is no such scale.
std::optional<std::size_t> scale_operand(const onnx::Builder& op, const onnx::Node& node);

// ONNX Runtime merges a product with a constant of one element into the MatMul beside it, as the
// attribute alpha: MatMulScaleFusion. Where that goes wrong, the constant is repeated along the
// last dim, or stands between two Neg where there is one element, which keeps the nodes apart.
// Returns whether any was.
//
// * alpha is one number of f32 for all scales around a MatMul: f64 loses digits, the product of
//   several may leave the range of f32, and 0 and infinities do not meet each element any more.
// * Of s = c x, t = d s, t @ a and s @ b it merges d first and then forgets that t @ a reads s:
//   when it merges c too it removes s, and the model does not load. So it is when the numbers of
//   scales on two ways from s to products differ by one, because each round merges one of each.
bool keep_scales(onnx::Model& model);

}  // namespace jaxport::target
