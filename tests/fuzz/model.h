// SPDX-License-Identifier: Apache-2.0
// What the ops of raised nodes compute.
#pragma once

#include "axis/graph/graph.h"

namespace jaxport::fuzz {

// raise::expand, but for what ONNX Runtime's op does otherwise than its definition: a row of
// Attention whose bias is -inf, or the lowest f32, everywhere is zero. The f64 programs have no
// such op: they are expanded.
axis::Use expand_as_runtime(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::fuzz
