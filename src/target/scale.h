// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// ONNX Runtime merges a product with a constant of one element into the MatMul beside it, as an
// attribute: in f32. In models with a MatMul of f64, such a constant that f32 does not hold is
// repeated along the last dim, which keeps the nodes apart.
void keep_scales(onnx::Model& model);

}  // namespace jaxport::target
