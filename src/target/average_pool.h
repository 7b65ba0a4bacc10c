// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// From opset 19 on, AveragePool of ONNX Runtime 1.21 to 1.24 takes the end of each axis from
// another place of `pads` when padding counts: sums at the border are divided by too few or too
// many. (With SAME_UPPER and SAME_LOWER this is so where the paddings may differ.)
bool is_padding_miscounted(const onnx::Node& node);

// Such padding becomes a Pad. Returns whether any was moved. (SAME_UPPER pads by sizes that may not
// be known, and stays.)
bool pad_before_averaging(onnx::Model& model);

}  // namespace jaxport::target
