// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::inspect {

// One thing that two models do not share. An empty side: the model does not have it.
struct Difference {
  std::string what;  // "opset", "input x", "initializer w", "nodes Add", "node 17"
  std::string lhs, rhs;
};

// Versions and metadata, inputs and outputs with types, initializers, numbers of nodes by op, and
// the first node that differs. Empty when the models are the same but for source locations.
std::vector<Difference> differences(const onnx::Model& lhs, const onnx::Model& rhs);

// The same about versions and metadata, inputs and outputs, parameters, nodes and functions,
// whether or not the models share it.
std::vector<Difference> side_by_side(const onnx::Model& lhs, const onnx::Model& rhs);

}  // namespace jaxport::inspect
