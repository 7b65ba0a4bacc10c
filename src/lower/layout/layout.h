// SPDX-License-Identifier: Apache-2.0
// Physical layouts: the order, grouping and unit dims of a value, in pieces of its axes; and the
// conversion between two of them, which is the only source of Transpose and Reshape nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "axis/graph/graph.h"
#include "dim/dim.h"

namespace jaxport::lower {

// Part of an axis: index = stride * i + …, for 0 <= i < size. A label l on an edge axis (l1 … lk)
// is the piece whose stride is the product of the sizes after it.
struct AxisPiece {
  std::int32_t axis = -1;
  Dim stride = 1, size = 1;
  friend bool operator==(const AxisPiece&, const AxisPiece&) = default;
};
using PhysicalDim = absl::InlinedVector<AxisPiece, 2>;  // a row-major product; empty = a unit dim
using Layout = absl::InlinedVector<PhysicalDim, 4>;
using AxisPieces = absl::InlinedVector<AxisPiece, 4>;

// The same in labels of one node: what emission decides on.
using Arrangement = axis::Pattern;

// The piece of each label of an edge; axis -1 for labels that the operand lacks.
AxisPieces label_pieces(const axis::Pattern& axes, const Dims& sizes);
// Labels that the operand lacks are left out.
Layout to_layout(const Arrangement& arrangement, const AxisPieces& pieces);
// A layout in the labels that run over the axes of its value. A label that the layout tears apart
// stays whole, at its first appearance; so does an axis of which symbolic sizes hide the parts.
Arrangement to_arrangement(const Layout& layout, const axis::Pattern& axes, const Dims& sizes);
// Canonical form: adjacent pieces of one axis inside a dim become one.
Layout merged(const Layout& layout);
Dims sizes_of(const Layout& layout);
Dim size_of(const axis::Labels& labels, const Dims& sizes);  // product

// Whether the quotient is a whole number greater than 1, for every value of the symbols.
bool divides_properly(const Dim& divisor, const Dim& value);

struct Step {
  std::vector<std::int64_t> perm;  // of a Transpose; empty: a Reshape
  Layout after;
};
// Prices of data movement relative to one ordinary node.
constexpr double kTransposePrice = 3, kReshapePrice = 1, kExpandPrice = 2;
double price_of(const std::vector<Step>& steps);

// The cheapest way from one layout to another: nothing, one Reshape, or [Reshape] Transpose
// [Reshape]. nullopt when the two do not consist of the same pieces, or when symbolic sizes cannot
// be divided.
std::optional<std::vector<Step>> conversion(const Layout& from, const Layout& to);

// Whether two pieces share a part of their axis: exact for static sizes, by divisibility for
// symbolic ones.
bool overlap(const AxisPiece& a, const AxisPiece& b);

// Splits both sides at the union of their boundaries, so that they consist of equal pieces.
bool cut(Layout& lhs, Layout& rhs);

}  // namespace jaxport::lower
