// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// Products that go wrong in ONNX Runtime when a size is 0 stand in an If, which costs 2 us. Returns
// whether there is one.
//
// * Of several matrices with sums of no terms, the kernels of f32 and f64 fill in the first with 0;
//   the others are what was in memory. Where the size can be 0, the other branch adds a term of 0.
// * ONNX Runtime merges a Transpose that moves the first dim into the matrices into the MatMul
//   behind it: MatmulTransposeFusion, attributes transBatchA and transBatchB. The merged product
//   divides by the size of that dim, so that a size of 0 ends the process. The other branch is not
//   merged; without the merger a product of 12 heads takes 1.1 to 1.5 times as long.
bool guard_empty_products(onnx::Model& model);

}  // namespace jaxport::target
