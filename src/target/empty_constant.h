// SPDX-License-Identifier: Apache-2.0
// OpenVINO reads a constant without elements as one number.
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// Such constants become the results of ConstantOfShape, but for empty lists of sizes and axes,
// which it reads rightly. Returns whether the model changed.
bool fill_empty_constants(onnx::Model& model);

}  // namespace jaxport::target
