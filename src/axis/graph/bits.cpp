// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/bits.h"

#include <cmath>

#include "axis/graph/expr.h"

namespace jaxport::axis {
namespace {

// x when `use` is x with 0 for -0 and one NaN for all: what jnp.sort and jnp.searchsorted compare.
// Empty for anything else.
Use without_signs(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "select_n") || use.node->edges.size() != 3) return {};
  const Use is_nan = graph.child(use, 0), number = graph.child(use, 1);
  const auto nan = graph.scalar_value(graph.child(use, 2));
  if (!nan || !std::isnan(*nan) || !is_nan.node->is(Kind::kPointwise, "ne")) return {};
  if (!number.node->is(Kind::kPointwise, "select_n") || number.node->edges.size() != 3) return {};
  const Use is_zero = graph.child(number, 0), x = graph.child(number, 1);
  if (graph.scalar_value(graph.child(number, 2)) != 0) return {};
  if (!is_zero.node->is(Kind::kPointwise, "eq") || graph.child(is_zero, 0) != x) return {};
  if (graph.scalar_value(graph.child(is_zero, 1)) != 0) return {};
  const Use a = graph.child(is_nan, 0), b = graph.child(is_nan, 1);
  return a == b && (a == x || a == number) ? x : Use{};
}

}  // namespace

// bits(1.0) | x >> (width - mantissa), read as a float, is 1 + (x >> …) / 2^mantissa.
Use float_of_random_bits(const Call& call) {
  const DType bits = call[0].node->dtype;
  const int mantissa = mantissa_bits(call.dtype);
  if (mantissa == 0 || !call[0].node->is(Kind::kPointwise, "or") || !is_unsigned(bits)) return {};
  const double exponent_of_one = std::exp2(bit_width(bits) - 2) - std::exp2(mantissa);
  const Use one = call.graph.child(call[0], 1), fraction = call.graph.child(call[0], 0);
  if (call.graph.scalar_value(one) != exponent_of_one) return {};
  if (!fraction.node->is(Kind::kPointwise, "shift_right_logical")) return {};
  const auto by = call.graph.scalar_value(call.graph.child(fraction, 1));
  if (by != bit_width(bits) - mantissa) return {};
  return convert(fraction, call.dtype) * std::exp2(-mantissa) + 1;
}

// The sign is what is left of x >> (width - 1).
Use sign_bit(const Call& call) {
  const bool is_truth = call.name == "ne" ? call.is_value(1, 0) : call.dtype == DType::kBool;
  const Node& shift = *call[0].node;
  const bool is_arithmetic = shift.is(Kind::kPointwise, "shift_right_arithmetic");
  if (!is_arithmetic && !shift.is(Kind::kPointwise, "shift_right_logical")) return {};
  const auto by = call.graph.scalar_value(call.graph.child(call[0], 1));
  if (!is_truth || !is_signed(shift.dtype) || by != bit_width(shift.dtype) - 1) return {};
  return compared("lt", call.graph.child(call[0], 0), 0.0);
}

// Integers have but one order. NaN is the last: a <= b or b is NaN; and a < b is the opposite of
// b <= a.
Use in_plain_order(const Call& call) {
  if (is_integer(call[0].node->dtype)) {
    return compared(call.name == "le_to" ? "le" : "lt", call[0], call[1]);
  }
  const Use a = without_signs(call.graph, call[0]), b = without_signs(call.graph, call[1]);
  if (!a || !b) return {};
  const auto is_not_after = [](const Use& x, const Use& y) {
    const Use is_nan = compared("ne", y, y);
    return logical_or(le(x, y), is_nan);
  };
  return call.name == "le_to" ? is_not_after(a, b) : logical_not(is_not_after(b, a));
}

}  // namespace jaxport::axis
