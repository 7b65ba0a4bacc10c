// SPDX-License-Identifier: Apache-2.0
// Decompositions that have a file of their own. Only expand.cpp includes this.
#pragma once

#include "axis/graph.h"

namespace jaxport::raise {

axis::Use expand_partial_rope(axis::Graph& graph, const axis::Use& use);
axis::Use expand_resize(axis::Graph& graph, const axis::Use& use);
axis::Use expand_rope(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::raise
