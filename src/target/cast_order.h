// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// ONNX Runtime ends with a segmentation fault while it loads Transpose, Cast, MatMul when the
// operands of the MatMul differ in rank and the Transpose moves the first dim into the matrices:
// MatmulTransposeFusion exchanges Cast and Transpose, then sees the ranks and gives up half way.
// Here the Cast comes first. Returns whether any was moved.
//
// A Transpose at the border of a function is kept from what stands on the other side.
bool cast_before_transposing(onnx::Model& model);

}  // namespace jaxport::target
