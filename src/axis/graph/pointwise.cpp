// SPDX-License-Identifier: Apache-2.0
// Canonical forms of pointwise nodes. Every rewrite here is exact; what only holds up to rounding
// (distribution, re-association) is left to the views of raise rules.
#include "axis/graph/pointwise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "axis/graph/bits.h"
#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "axis/graph/store.h"
#include "axis/translate/size_value.h"

namespace jaxport::axis {
namespace {

bool is_bool(const Use& use) { return use.node->dtype == DType::kBool; }

// x for convert_element_type(x) with x: bool; empty otherwise.
Use converted_bool(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "convert_element_type")) return {};
  return use.node->edges[0].node->dtype == DType::kBool ? graph.child(use, 0) : Use{};
}

// --- identities x op c = x

// The other operand when one of them is the constant `neutral`.
Use drop_neutral(const Call& call, double neutral, bool either_side) {
  if (call.is_value(1, neutral) && call[0].node->dtype == call.dtype) return call[0];
  if (either_side && call.is_value(0, neutral) && call[1].node->dtype == call.dtype) return call[1];
  return {};
}
Use plus_zero(const Call& call) { return drop_neutral(call, 0, true); }
Use minus_zero(const Call& call) { return drop_neutral(call, 0, false); }
Use times_one(const Call& call) { return drop_neutral(call, 1, true); }
Use over_one(const Call& call) { return drop_neutral(call, 1, false); }
Use max_with_lowest(const Call& call) { return drop_neutral(call, -kInfinity, true); }
Use min_with_highest(const Call& call) { return drop_neutral(call, kInfinity, true); }
Use or_with_zero(const Call& call) { return drop_neutral(call, 0, true); }
Use and_with_true(const Call& call) {
  return call.dtype == DType::kBool ? drop_neutral(call, 1, true) : Use{};
}

// min(max(x, lo), hi) and max(min(x, hi), lo) are a clamp when lo <= hi.
Use bounded_on_both_sides(const Call& call) {
  const bool is_min = call.name == "min";
  const Node& inner = *call[0].node;
  if (!inner.is(Kind::kPointwise, is_min ? "max" : "min") || !call.values[1]) return {};
  const Use x = call.graph.child(call[0], 0), bound = call.graph.child(call[0], 1);
  const auto other = call.graph.scalar_value(bound);
  if (!other || inner.dtype != call.dtype || call.dtype == DType::kBool) return {};
  const bool in_order = is_min ? *other <= *call.values[1] : *call.values[1] <= *other;
  if (!in_order) return {};
  return is_min ? clamp(bound, x, call[1]) : clamp(call[1], x, bound);
}

Use same_operands(const Call& call) { return call[0] == call[1] ? call[0] : Use{}; }

Use and_with_false(const Call& call) {
  if (call.dtype != DType::kBool) return {};
  if (call.is_value(0, 0)) return call[0];
  return call.is_value(1, 0) ? call[1] : Use{};
}
Use or_with_true(const Call& call) {
  if (call.dtype != DType::kBool) return {};
  if (call.is_value(0, 1)) return call[0];
  return call.is_value(1, 1) ? call[1] : Use{};
}

// --- products and powers

// x*x = x^2 and x^2*x = x^3: integer_pow multiplies in just this order.
Use product_as_power(const Call& call) {
  if (is_complex(call.dtype) || call.dtype == DType::kBool) return {};
  if (call[0].node->dtype != call.dtype || call[1].node->dtype != call.dtype) return {};
  if (call[0] == call[1]) return integer_pow(call[0], 2);
  for (std::size_t i : {0u, 1u}) {
    const Node& node = *call[i].node;
    if (!node.is(Kind::kPointwise, "integer_pow")) continue;
    const front::Attr* y = node.attr("y");
    const auto* exponent = y ? y->get_if<std::int64_t>() : nullptr;
    if (exponent && *exponent == 2 && call.graph.child(call[i], 0) == call[1 - i]) {
      return integer_pow(call[1 - i], 3);
    }
  }
  return {};
}

// float(p) * float(q) = float(p and q)
Use product_of_bools(const Call& call) {
  Use p = converted_bool(call.graph, call[0]), q = converted_bool(call.graph, call[1]);
  if (!p || !q) return {};
  return convert(logical_and(p, q), call.dtype);
}

Use first_power(const Call& call) {
  const auto* y = call.attrs.empty() ? nullptr : call.attrs[0].second.get_if<std::int64_t>();
  return y && *y == 1 && call[0].node->dtype == call.dtype ? call[0] : Use{};
}

// x^0 = 1, of NaN too.
Use zeroth_power(const Call& call) {
  const auto* y = call.attrs.empty() ? nullptr : call.attrs[0].second.get_if<std::int64_t>();
  return y && *y == 0 ? call.graph.scalar(1, call.dtype) : Use{};
}

Use double_negative(const Call& call) {
  return call[0].node->is(Kind::kPointwise, call.name) ? call.graph.child(call[0], 0) : Use{};
}

// --- conversions

// Every value of `narrow` survives in `wide`.
bool holds(DType wide, DType narrow) {
  if (is_float(narrow) && (wide == DType::kF32 || wide == DType::kF64)) {
    return byte_width(wide) > byte_width(narrow);
  }
  if (!is_integer(narrow)) return false;
  if (is_integer(wide)) return byte_width(wide) >= byte_width(narrow);
  return (wide == DType::kF32 || wide == DType::kF64) && mantissa_bits(wide) >= bit_width(narrow);
}

Use same_dtype(const Call& call) { return call[0].node->dtype == call.dtype ? call[0] : Use{}; }

// bf16 -> f32 -> bf16
Use there_and_back(const Call& call) {
  if (!call[0].node->is(Kind::kPointwise, "convert_element_type")) return {};
  Use source = call.graph.child(call[0], 0);
  const bool exact = source.node->dtype == call.dtype && holds(call[0].node->dtype, call.dtype);
  return exact ? source : Use{};
}

// 0 and 1 exist in every dtype on the way.
Use convert_of_bool(const Call& call) {
  Use source = converted_bool(call.graph, call[0]);
  return source ? convert(source, call.dtype) : Use{};
}

// All bits of a signed number.
Use and_with_all_bits(const Call& call) {
  return is_integer(call.dtype) && is_signed(call.dtype) ? drop_neutral(call, -1, true) : Use{};
}

// x << 0 and x >> 0. lax reads amounts as unsigned. One of the width and more leaves no bit, or the
// sign alone.
Use shift_by_known(const Call& call) {
  if (!call.values[1] || call[0].node->dtype != call.dtype) return {};
  if (*call.values[1] == 0) return call[0];
  const int width = bit_width(call.dtype);
  if (*call.values[1] > 0 && *call.values[1] < width) return {};
  if (call.name != "shift_right_arithmetic") return call.graph.scalar(0, call.dtype);
  const Use most = call.graph.scalar(width - 1, call[1].node->dtype);
  return call.graph.pointwise(call.name, {call[0], most}, call.dtype);
}

// --- comparisons and logic

// x == x where there is no NaN.
Use compared_with_itself(const Call& call) {
  const DType dtype = call[0].node->dtype;
  if (!(call[0] == call[1]) || is_float(dtype) || is_complex(dtype)) return {};
  return call.graph.scalar(call.name == "eq" ? 1 : 0, DType::kBool);
}

// float(p) != 0, float(p) > 0
Use is_set(const Call& call) {
  return call.is_value(1, 0) ? converted_bool(call.graph, call[0]) : Use{};
}
// float(p) == 0
Use is_not_set(const Call& call) {
  const Use p = is_set(call);
  return p ? logical_not(p) : Use{};
}

// n > 0 for the size of an axis, as jnp.var asks before it divides.
Use is_positive_size(const Call& call) {
  if (!call.is_value(1, 0) || call.values[0]) return {};
  const auto size = size_value(call.graph, call[0]);
  const bool is_positive = size && less_equal(1, *size) == Truth::kYes;
  return is_positive ? call.graph.scalar(1, DType::kBool) : Use{};
}

// not (a < b) is a >= b for integers; with floats, NaN is neither. eq and ne are opposites always.
Use opposite_comparison(const Call& call) {
  constexpr std::pair<std::string_view, std::string_view> kOpposites[] = {
      {"eq", "ne"}, {"ne", "eq"}, {"ge", "lt"}, {"gt", "le"}, {"le", "gt"}, {"lt", "ge"}};
  const Node& node = *call[0].node;
  if (node.kind != Kind::kPointwise || call.dtype != DType::kBool) return {};
  auto row = std::ranges::find(kOpposites, node.name,
                               &std::pair<std::string_view, std::string_view>::first);
  if (row == std::ranges::end(kOpposites)) return {};
  const bool exact =
      node.name == "eq" || node.name == "ne" || is_integer(node.edges[0].node->dtype);
  if (!exact) return {};
  const std::vector<Use> sides = call.graph.children(call[0]);
  return compared(row->second, sides[0], sides[1]);
}

// p != false and p == true are p; p == false and p != true are its opposite.
Use compared_with_truth(const Call& call) {
  if (!is_bool(call[0]) || !call.values[1]) return {};
  const bool keeps = (*call.values[1] != 0) == (call.name == "eq");
  return keeps ? call[0] : logical_not(call[0]);
}

// --- select_n(p, if_false, if_true)

bool is_binary_select(const Call& call) { return call.operands.size() == 3 && is_bool(call[0]); }

Use select_known(const Call& call) {
  if (call.operands.size() == 2) return call[1];  // there is no other case
  if (!is_binary_select(call)) return {};
  if (call.values[0]) return *call.values[0] != 0 ? call[2] : call[1];
  return call[1] == call[2] ? call[1] : Use{};
}

// select(p, 0, 1) is p in the dtype of the branches; select(p, 1, 0) is its opposite.
Use select_zero_one(const Call& call) {
  if (!is_binary_select(call)) return {};
  if (call.is_value(1, 0) && call.is_value(2, 1)) return convert(call[0], call.dtype);
  const bool is_opposite = call.dtype == DType::kBool && call.is_value(1, 1) && call.is_value(2, 0);
  return is_opposite ? logical_not(call[0]) : Use{};
}

Use select_of_bools(const Call& call) {
  if (!is_binary_select(call) || call.dtype != DType::kBool) return {};
  if (call.is_value(1, 0)) return logical_and(call[0], call[2]);
  return call.is_value(2, 1) ? logical_or(call[0], call[1]) : Use{};
}

Use select_of_not(const Call& call) {
  if (!is_binary_select(call) || !call[0].node->is(Kind::kPointwise, "not")) return {};
  return select(call.graph.child(call[0], 0), call[1], call[2]);
}

// --- the table

constexpr PointwiseRow kPointwiseRows[] = {
    // sorted by name
    {"abs"},
    {"acos"},
    {"acosh"},
    {"add", 2, true, {plus_zero}},
    {"and", 2, true, {and_with_true, and_with_false, and_with_all_bits, same_operands}},
    {"asin"},
    {"asinh"},
    {"atan"},
    {"atan2", 2},
    {"atanh"},
    {"bessel_i0e"},
    {"bessel_i1e"},
    {"bitcast_convert_type", 1, false, {same_dtype, float_of_random_bits}},
    {"cbrt"},
    {"ceil"},
    {"clamp", 3},
    {"clz"},
    {"complex", 2},
    {"conj"},
    {"convert_element_type", 1, false, {same_dtype, there_and_back, convert_of_bool, sign_bit}},
    {"cos"},
    {"cosh"},
    {"digamma"},
    {"div", 2, false, {over_one}},
    {"eq", 2, true, {is_not_set, compared_with_truth, compared_with_itself}},
    {"eq_to", 2},
    {"erf"},
    {"erf_inv"},
    {"erfc"},
    {"exp"},
    {"exp2"},
    {"expm1"},
    {"floor"},
    {"ge", 2},
    {"gt", 2, false, {is_set, is_positive_size}},
    {"igamma", 2},
    {"igamma_grad_a", 2},
    {"igammac", 2},
    {"imag"},
    {"integer_pow", 1, false, {first_power, zeroth_power}, {"y"}},
    {"is_finite"},
    {"le", 2},
    {"le_to", 2, false, {in_plain_order}},
    {"lgamma"},
    {"log"},
    {"log1p"},
    {"logistic"},
    {"lt", 2},
    {"lt_to", 2, false, {in_plain_order}},
    {"max", 2, true, {max_with_lowest, same_operands, bounded_on_both_sides}},
    {"min", 2, true, {min_with_highest, same_operands, bounded_on_both_sides}},
    {"mul", 2, true, {times_one, product_of_bools, product_as_power}},
    {"ne", 2, true, {is_set, compared_with_truth, compared_with_itself, sign_bit}},
    {"neg", 1, false, {double_negative}},
    {"nextafter", 2},
    {"not", 1, false, {double_negative, opposite_comparison}},
    {"or", 2, true, {or_with_zero, or_with_true, same_operands}},
    {"polygamma", 2},
    {"population_count"},
    {"pow", 2},
    {"random_gamma_grad", 2},
    {"real"},
    {"reduce_precision", 1, false, {}, {"exponent_bits", "mantissa_bits"}},
    {"regularized_incomplete_beta", 3},
    {"rem", 2},
    {"round", 1, false, {}, {"rounding_method"}},
    {"rsqrt"},
    {"select_n",
     2,
     false,
     {select_known, select_zero_one, select_of_bools, select_of_not, case_of_first_true}},
    {"shift_left", 2, false, {shift_by_known}},
    {"shift_right_arithmetic", 2, false, {shift_by_known}},
    {"shift_right_logical", 2, false, {shift_by_known}},
    {"sign"},
    {"sin"},
    {"sinh"},
    {"sqrt"},
    {"sub", 2, false, {minus_zero}},
    {"tan"},
    {"tanh"},
    {"xor", 2, true},
    {"zeta", 2},
};
static_assert(std::ranges::is_sorted(kPointwiseRows, {}, &PointwiseRow::name));

bool is_kept(const PointwiseRow& row, std::string_view attr) {
  return std::ranges::find(row.kept_attrs, attr) != row.kept_attrs.end();
}

// Primitives that mean the same get the same name.
std::string_view canonical_name(std::string_view name) {
  if (name == "square") return "integer_pow";
  return name == "add_any" ? "add" : name;
}

}  // namespace

const PointwiseRow* find_pointwise(std::string_view name) {
  name = canonical_name(name);
  auto row = std::ranges::lower_bound(kPointwiseRows, name, {}, &PointwiseRow::name);
  return row != std::ranges::end(kPointwiseRows) && row->name == name ? row : nullptr;
}

Use Graph::pointwise(std::string_view name, std::vector<Use> operands, DType dtype,
                     front::Attrs attrs) {
  if (name == "square") attrs = {{"y", 2}};
  Call call{*this, canonical_name(name), std::move(operands), dtype, std::move(attrs), {}};
  const PointwiseRow* row = find_pointwise(call.name);
  if (row) {
    std::erase_if(call.attrs, [&](const auto& attr) { return !is_kept(*row, attr.first); });
    if (row->commutative) std::ranges::stable_sort(call.operands, {}, canonical_rank);
    for (const Use& use : call.operands) call.values.push_back(scalar_value(use));
    for (Simplify simplify : row->simplify) {
      if (!simplify) break;
      if (Use simpler = simplify(call)) return simpler;
    }
  }
  Labels labels;
  for (const Use& use : call.operands) add_new(labels, use.flat());
  return impl_->make({.kind = Kind::kPointwise,
                      .name = call.name,
                      .dtype = dtype,
                      .operands = std::move(call.operands),
                      .out = axis_each(labels),
                      .commutative = row && row->commutative,
                      .attrs = std::move(call.attrs)});
}

}  // namespace jaxport::axis
