// SPDX-License-Identifier: Apache-2.0
// Picks and slices as ranges of a larger value.
#pragma once

#include <optional>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// Elements [start, limit) along label `whole` of `base`.
struct Part {
  axis::Use base;
  axis::Label whole;
  Dim start, limit;
};

// `use` as a part of a larger value, along the labels `run` of one of its axes. nullopt when it is
// no contiguous part.
std::optional<Part> part_of(axis::Graph& graph, const axis::Use& use, const axis::Labels& run);

// The labels along which a pick or a slice goes on; empty when there are none.
axis::Labels run_of(axis::Graph& graph, const axis::Use& use);

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
