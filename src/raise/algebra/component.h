// SPDX-License-Identifier: Apache-2.0
// One component of a value along a label of size two, as a sum of products.
#pragma once

#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// Index `component` of `use` along the label, or all of `use`, which does not vary along it.
struct Factor {
  axis::Use use;
  int component = kWhole;
  static constexpr int kWhole = -1;
  friend bool operator==(const Factor&, const Factor&) = default;
};
struct Summand {
  double coefficient = 1;
  std::vector<Factor> factors;
};
using Summands = std::vector<Summand>;

// Index `k` of `use` along `p`. Looks through add, sub, neg, mul and stacks along p, to a bounded
// depth; a value that something takes apart stays one factor. Halves of a value are factors of that
// value seen over p, however they were cut out.
Summands component(axis::Graph& graph, const axis::Use& use, axis::Label p, int k);

// The value that a factor stands for.
axis::Use value_of(axis::Graph& graph, const Factor& factor, axis::Label p);

// 1 when the two halves of a constant along p are equal, -1 when they are opposite numbers; 0
// otherwise, and for what is no small constant.
int symmetry(axis::Graph& graph, const axis::Use& use, axis::Label p);

}  // namespace jaxport::raise
