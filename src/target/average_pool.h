// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// From opset 19 on, AveragePool of ONNX Runtime 1.21 to 1.24 does not count the padding at the end
// when it should: sums at the border are divided by too few. Here such padding is a Pad. Returns
// whether any was moved. (SAME_UPPER pads by sizes that may not be known, and stays.)
bool pad_before_averaging(onnx::Model& model);

}  // namespace jaxport::target
