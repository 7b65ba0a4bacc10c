// SPDX-License-Identifier: Apache-2.0
// The table of pointwise primitives: what they keep of their parameters, and their canonical forms.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::axis {

struct UseHash {
  std::size_t operator()(const Use& use) const;
};

// A pointwise node that is to be made.
struct Call {
  Graph& graph;
  std::string_view name;
  std::vector<Use> operands;
  DType dtype;
  front::Attrs attrs;
  std::vector<std::optional<double>> values;  // of operands that are scalar constants

  const Use& operator[](std::size_t i) const { return operands[i]; }
  bool is_value(std::size_t i, double value) const { return values[i] && *values[i] == value; }
};

// A shorter or more usual spelling of the same value, exact in every element; empty when the call
// stays as it is.
using Simplify = Use (*)(const Call&);

struct PointwiseRow {
  std::string_view name;
  std::size_t operands = 1;  // of select_n: at least
  bool commutative = false;
  std::array<Simplify, 5> simplify{};            // tried in order; unused entries are null
  std::array<std::string_view, 2> kept_attrs{};  // all other parameters mean nothing for the value
};

// The case of the first condition that is true (first_true.cpp).
Use case_of_first_true(const Call& call);

// The row of an elementwise lax primitive; nullptr for others.
const PointwiseRow* find_pointwise(std::string_view name);

}  // namespace jaxport::axis
