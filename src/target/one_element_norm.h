// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime 1.21 to 1.23 refuse a LayerNormalization over one element.
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// Whether the norm is known to be one over one element.
bool is_norm_of_one(const onnx::Model& model, const onnx::Node& node);

// Where the number of elements may be 1, an If computes (x - x) * scale + bias then. Returns
// whether the model changed.
bool guard_norms_of_one(onnx::Model& model);

}  // namespace jaxport::target
