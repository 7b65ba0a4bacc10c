// SPDX-License-Identifier: Apache-2.0
// Scalar functions that have a name: each is one formula, evaluated on numbers to recognise it and
// built on the graph to expand it.
#pragma once

#include <span>
#include <string_view>

#include "axis/graph.h"

namespace jaxport::raise {

// A value of the graph with the arithmetic that formulas are written in.
struct Expr {
  axis::Graph* graph;
  axis::Use use;
};

// The values that the attribute alpha may have; without one the function has no alpha.
struct AlphaRange {
  double least = 0, most = -1;
  bool has_one = true;  // false: with 1 the function is the identity
  bool has(double alpha) const {
    return least <= alpha && alpha <= most && (has_one || alpha != 1);
  }
  bool is_empty() const { return most < least; }
};

struct Activation {
  std::string_view name;  // of the raised kPointwise node and of its rule
  double (*value)(double x, double alpha);
  Expr (*formula)(Expr x, double alpha);
  AlphaRange alpha;
};

std::span<const Activation> activations();
const Activation* find_activation(std::string_view name);  // nullptr: not one of them

double nan_max(double a, double b);  // as lax.max: NaN wins

axis::Use expand_activation(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::raise
