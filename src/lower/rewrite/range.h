// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "axis/graph/graph.h"

namespace jaxport::lower {

// The values that an integer may have.
struct Range {
  Dim least, most;
};

// What is known of an integer of the graph: constants, positions, sizes, what argmax gives, and
// simple arithmetic with them. Looks at a bounded number of nodes.
std::optional<Range> range_of(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::lower
