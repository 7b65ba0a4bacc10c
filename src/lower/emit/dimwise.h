// SPDX-License-Identifier: Apache-2.0
// Positional primitives that treat each dim by itself: pad, rev, running sums. They take their
// first operand in the layout that costs least, and are told the order of its dims.
#pragma once

#include <optional>

#include "lower/emit/emission.h"

namespace jaxport::lower {

// The operand of such a primitive, for a result that is laid out so; nullopt when dims appear or
// vanish.
std::optional<Arrangement> dimwise_operand(const axis::Node& node, const Arrangement& result);
// Emits the node if its row is that of such a primitive; false otherwise.
bool emit_dimwise(Emission& e, const axis::Node& node, const Row& row);

}  // namespace jaxport::lower
