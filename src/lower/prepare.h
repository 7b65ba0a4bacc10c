// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "axis/graph.h"

namespace jaxport::lower {

// Rewrites on the axis graph that only make sense for ONNX: macros that the opset has no op for are
// expanded, sums divided by their count become means, per-channel additions move into the
// convolution before them.
void prepare(axis::Program& program, int opset);

}  // namespace jaxport::lower
