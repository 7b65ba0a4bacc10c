// SPDX-License-Identifier: Apache-2.0
// Scalar functions that have a name: each is one formula, evaluated on forms to recognise it, on
// numbers at NaN and the infinities, and built on the graph to expand it.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "axis/graph/graph.h"
#include "raise/algebra/form.h"
#include "raise/engine/op.h"

namespace jaxport::raise {

using NumericFunction = std::function<double(double)>;

// The values that the attribute alpha may have; without one the function has no alpha.
struct AlphaRange {
  double least = 0, most = -1;
  bool has_one = true;   // false: with 1 the function is the identity
  bool is_jump = false;  // the function jumps at alpha: it must be a number of the dtype
  bool has(double alpha) const {
    return least <= alpha && alpha <= most && (has_one || alpha != 1);
  }
  bool is_empty() const { return most < least; }
};

struct Activation {
  std::string_view name;  // of the raised kPointwise node and of its rule
  double (*value)(double x, double alpha);
  Form (*form)(const Form& x, double alpha);
  axis::Use (*formula)(const axis::Use& x, double alpha);
  AlphaRange alpha;
  // The only alpha with which the function can be `f`; any number when there is none.
  double (*solve)(const NumericFunction& f);
};

std::span<const Activation> activations();
const Activation* find_activation(std::string_view name);  // nullptr: not one of them

// The attribute of activations that have one; 0 without.
struct AlphaAttr {
  double alpha = 0;
  void fields(Fields& f) { f.attr("alpha", alpha); }
};
double alpha_of(const axis::Node& node);

axis::Use expand_activation(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::raise
