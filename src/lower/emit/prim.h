// SPDX-License-Identifier: Apache-2.0
// Positional primitives: operands and results with their jaxpr dims, in the order of a row.
#pragma once

#include "lower/emit/emission.h"

namespace jaxport::lower {

// Throws Error E012 for the first node, those of regions last, that nothing lowers.
void report_missing(const Plan& plan, int opset);

// The row that lowers the node. A primitive with a lowering of the user has one that is empty.
const Row& row_for(const Emission& e, const axis::Node& node);
// Lowers a primitive, by the row or by the user's function.
Values run_lowering(const Emission& e, const axis::Node& node, const Row& row, Ctx& ctx);

// The order in which a primitive takes operand `i`: its jaxpr dims permuted as its row asks.
Arrangement prim_operand(const axis::Node& node, std::size_t i, int opset);

}  // namespace jaxport::lower
