// SPDX-License-Identifier: Apache-2.0
// Values as sums of products, seen through the layouts in which libraries join and split them: one
// contraction for several gates, or for several operands side by side.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

struct Monomial {
  double coefficient = 1;
  std::vector<axis::Use> factors;
};
using Polynomial = std::vector<Monomial>;

// True for a value that is not looked into.
using IsAtom = std::function<bool(const axis::Use&)>;

// Looks through add, sub, neg, mul, division by a literal, and contractions of joined operands.
// All other factors, atoms among them, are taken as they are after sunk(). nullopt when there are
// too many.
std::optional<Polynomial> polynomial(axis::Graph& graph, const axis::Use& use,
                                     const IsAtom& is_atom);

// The same value before it was laid out, with picks and slices moved below pointwise operations and
// contractions: pick(f(a, b)) = f(pick(a), pick(b)).
axis::Use sunk(axis::Graph& graph, const axis::Use& use);

// coefficient * product of the factors, of this dtype.
axis::Use product(axis::Graph& graph, const Monomial& monomial, DType dtype);

}  // namespace jaxport::raise
