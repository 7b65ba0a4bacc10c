// SPDX-License-Identifier: Apache-2.0
// What crosses the border of ONNX Runtime Web.
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// JavaScript has no arrays of bf16 and of floats of 8 bits, and ONNX Runtime Web refuses a model
// that takes or gives them.
bool is_unknown_to_javascript(const onnx::Model& model, onnx::ValueId id);

// Such inputs and outputs become f32, which holds their values exactly, with a Cast behind or in
// front.
void narrow_border(onnx::Model& model);

}  // namespace jaxport::target
