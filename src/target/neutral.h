// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// ONNX Runtime removes x + 0, x - 0, x * 1 and x / 1 when it loads a model (NoopElimination), and
// reads the constant in f32: of f64 it removes x + 1e-46 and x * (1 + 1e-12) too. With both
// operands negated the constant is no such number. Returns whether any was.
bool keep_nearly_neutral(onnx::Model& model);

}  // namespace jaxport::target
