// SPDX-License-Identifier: Apache-2.0
// All passes, on a model that somebody else wrote.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "onnx/ir.h"
#include "pass/pass.h"

namespace jaxport::pass {

// The passes of optimise(), in order.
std::span<const Pass> passes_for_any_model();

// Makes the model smaller. Its opsets, its inputs and outputs, ops of other domains and calls of
// functions (domain and name) stay. Returns what each pass changed.
PassCounts optimise(onnx::Model& model,
                    std::span<const std::pair<std::string, std::string>> functions = {});

}  // namespace jaxport::pass
