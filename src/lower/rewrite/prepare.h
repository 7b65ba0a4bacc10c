// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "axis/graph/graph.h"
#include "lower/lower.h"

namespace jaxport::lower {

// Rewrites on the axis graph that only make sense for ONNX: macros that the target has no op for
// are expanded, sums divided by their count become means, per-channel additions move into the
// convolution before them.
void prepare(axis::Program& program, const Options& options);

}  // namespace jaxport::lower
