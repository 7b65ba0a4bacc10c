// SPDX-License-Identifier: Apache-2.0
// What is known of the floats of the graph. Each function looks at a bounded number of nodes.
#pragma once

#include "axis/graph/graph.h"

namespace jaxport::lower {

// A node whose elements are elements of its operands.
bool moves_elements(const axis::Node& node);

// No element is NaN: what integers become, positions, a choice that replaces NaN, and functions of
// these that make no NaN.
bool is_never_nan(axis::Graph& graph, const axis::Use& use);

// Every element is a whole number, and no zero has a sign: what integers become.
bool is_whole(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::lower
