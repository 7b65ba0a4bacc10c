// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::target {

// Nodes whose kernels are slow in the target (kernel_facts.h) become others with the same numbers
// up to rounding. Returns whether any did. It comes after the passes, which know the ops.
bool write_fast_forms(onnx::Model& model, const Target& target);

}  // namespace jaxport::target
