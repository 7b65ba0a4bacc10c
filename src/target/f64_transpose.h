// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// Up to version 1.25 ONNX Runtime merges Transpose and MatMul of f64 into FusedMatMul, which it has
// no kernel for: the model does not load. It also moves a Transpose through other nodes to a
// MatMul, but not through a Reshape that changes the rank. In a model with products of f64 each
// Transpose of f64 gets one more dim, between two Reshapes. Returns whether any did.
bool keep_f64_transposes(onnx::Model& model);

}  // namespace jaxport::target
