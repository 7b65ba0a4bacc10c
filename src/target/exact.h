// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::target {

// Models that give what JAX gives also where that costs: each op with a fact of KernelFacts under
// "What only exact models avoid" is mended by nodes around it. The legaliser comes after it.
// Returns whether anything changed.
bool make_exact(onnx::Model& model, const Target& target);

}  // namespace jaxport::target
