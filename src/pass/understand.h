// SPDX-License-Identifier: Apache-2.0
// Models that others wrote: what of them passes may touch, and the types of their values.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "onnx/ir.h"

namespace jaxport::pass {

// A domain that starts so belongs to an op that passes leave as it is (wire::kForeign).
constexpr char kForeign = '?';

// Marks every node that does not fit a schema of ai.onnx at the model's opset, is a call of one of
// the functions (domain and name) or has another domain. Gives each value a name of its own, or
// none, and forgets what the file says of the types of results: it may be wrong.
void mark_foreign(onnx::Model& model,
                  std::span<const std::pair<std::string, std::string>> functions);

// Infers the types of the results of all nodes that are not foreign, from those of the inputs.
void infer_types(onnx::Model& model);

}  // namespace jaxport::pass
