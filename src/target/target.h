// SPDX-License-Identifier: Apache-2.0
// What a model must respect to run: the ONNX specification alone, or the kernels of a runtime too.
#pragma once

#include <optional>
#include <string_view>

#include "onnx/ir.h"
#include "support/preferences.h"

namespace jaxport::target {

enum class Target : std::uint8_t {
  kOnnxRuntime,  // ops and dtypes that ONNX Runtime has kernels for on the CPU
  kOnnx,         // whatever the schemas of the opset allow
};
Target target_from_name(std::string_view name);  // "onnxruntime", "onnx"; else E079
const Preferences& preferences(Target target);   // see support/preferences.h

// Whether the target computes `op` at `opset` with all its operands in `dtype`, but for indices and
// the like, which the op never takes in it.
bool runs(Target target, std::string_view op, int opset, DType dtype);

// Rewrites each node whose dtypes the target has no kernel for: its operands are widened, the op
// runs in a dtype that the target has, the result is narrowed; or the op is composed of others.
// Results are those of the dtype that the node had. Inputs and outputs of the model keep theirs.
// Error E013: there is neither a wider dtype nor a composition.
void legalise(onnx::Model& model, Target target);

// ONNX Runtime rewrites models when it loads them, and some of its rewrites are wrong. The patterns
// that they start from are written in another way; what becomes dead stays. Comes after all passes,
// which might make such a pattern. Returns whether anything changed.
bool avoid_faults(onnx::Model& model, Target target);

}  // namespace jaxport::target
