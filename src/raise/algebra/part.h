// SPDX-License-Identifier: Apache-2.0
// Labels that a relayout merged, taken apart and merged again.
#pragma once

#include "axis/graph/graph.h"

namespace jaxport::raise {

// A value with the labels that a relayout had merged into one.
struct Opened {
  axis::Use use;
  axis::Labels product;
};
// The operand of a relayout that made `piece`, a whole axis; any other use as it is. Empty when the
// relayout has no such axis.
Opened opened(axis::Graph& graph, const axis::Use& use, axis::Label piece);
// The value with `product` as one real label: what `opened` undoes.
axis::Use merged(axis::Graph& graph, const axis::Use& use, const axis::Labels& product,
                 axis::Label as);

axis::Use renamed(const axis::Use& use, axis::Label from, const axis::Labels& to);

}  // namespace jaxport::raise
