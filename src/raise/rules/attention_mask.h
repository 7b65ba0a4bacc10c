// SPDX-License-Identifier: Apache-2.0
// Boolean masks of attention: those that compare positions, and masks that are added.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// The masks whose conjunction `mask` is.
std::vector<axis::Use> conjuncts(axis::Graph& graph, const axis::Use& mask);

// True where lowest <= row - column <= highest, the positions along two labels.
struct Band {
  axis::Label row, column;
  double lowest, highest;
};
// The intersection of these masks when each of them is a band of row and `column`, one row for all:
// comparisons of iotas, or a constant that is a lower triangle.
std::optional<Band> band_of(axis::Graph& graph, const std::vector<axis::Use>& masks,
                            axis::Label column);
// True when column <= row, whatever the sizes.
bool is_causal(const axis::Graph& graph, const Band& band);
// No row is false everywhere.
bool has_no_empty_row(const axis::Graph& graph, const Band& band);

// A value that is 0 where `keep` holds and `fill` elsewhere.
struct AdditiveMask {
  axis::Use keep;
  double fill;
};
// select(m, 0, fill), its mirror image, (1 - float(m)) * fill, and a constant of two values
std::optional<AdditiveMask> additive_mask(axis::Graph& graph, const axis::Use& use);
// A constant [rows, columns] that is 0 in its lower triangle and another number above it; `keep`
// compares positions.
std::optional<AdditiveMask> additive_triangle(axis::Graph& graph, const axis::Use& use,
                                              axis::Label column);

}  // namespace jaxport::raise
