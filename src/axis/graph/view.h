// SPDX-License-Identifier: Apache-2.0
// What primitives that only move data do to a View, and how Views of several operands agree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// The dims of a value of this shape that varies along none of them: a fresh label each.
Pattern broadcast_dims(Graph& graph, const Dims& shape);

View reshape(Graph& graph, const View& view, const Dims& shape);

// Elements start, start + stride, … of dim `dim`; `count` of them.
View slice_dim(Graph& graph, const View& view, std::size_t dim, const Dim& start, const Dim& count,
               std::int64_t stride);

// The pieces one after the other along dim `dim`; at least one. Pieces of equal size are stacked;
// `units` says whether those of size 1 are.
enum class Units : std::uint8_t { kStacked, kJoined };
View join_dim(Graph& graph, std::vector<View> pieces, std::size_t dim, Units units);

// One label for dim `dim`, which the value really has: a product is merged and a broadcast
// materialised there. Other broadcasts stay virtual.
View merge_dim(Graph& graph, const View& view, std::size_t dim);

// One axis for each non-unit dim, in order: what a positional primitive reads.
Use positional(Graph& graph, const View& view);

// Gives dim `dims[i]` of each views[i] the same labels and returns them. Views that do not vary
// there follow the others. Merges the dim where the factorisations do not fit.
Labels align(Graph& graph, std::span<View> views, std::span<const std::size_t> dims);

// Operands of an elementwise primitive over shared labels. Views have one rank or are scalars; unit
// dims broadcast.
struct Unified {
  std::vector<Use> uses;
  Pattern dims;
};
Unified unify(Graph& graph, std::vector<View> views);

}  // namespace jaxport::axis
