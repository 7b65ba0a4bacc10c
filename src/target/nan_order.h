// SPDX-License-Identifier: Apache-2.0
// For OpenVINO NaN is greater than every number, and not less.
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// a > b becomes b < a and a >= b becomes b <= a, which are false for NaN. Returns whether the model
// changed.
bool compare_by_less(onnx::Model& model);

}  // namespace jaxport::target
