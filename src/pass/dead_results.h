// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::pass {

// Drops results of an If, Loop or Scan that nobody needs, with what only they need: outputs of the
// subgraphs, and carries that lead to no needed result. `is_needed` is by value. Returns how many
// outputs were dropped. A node with unknown subgraphs stays as it is.
std::size_t drop_dead_results(onnx::Node& node, const std::vector<bool>& is_needed);

// Drops the operands of a call that its body does not use, with the inputs of the body. `is_needed`
// knows what the body needs. Returns how many were dropped; 0 for other nodes.
std::size_t drop_dead_operands(onnx::Node& node, const std::vector<bool>& is_needed);

}  // namespace jaxport::pass
