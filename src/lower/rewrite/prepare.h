// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "axis/graph/graph.h"
#include "lower/lower.h"

namespace jaxport::lower {

// Rewrites on the axis graph that only make sense for ONNX: ops of rules that the target does not
// have are expanded, sums divided by their count become means, a bias becomes an operand of its
// convolution, and all else that rewrite.h lists. Regions are prepared too.
void prepare(axis::Program& program, const Options& options);

}  // namespace jaxport::lower
