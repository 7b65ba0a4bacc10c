// SPDX-License-Identifier: Apache-2.0
// Comparisons, selections and logic.
#include <algorithm>

#include "lower/rows/float_bits.h"

namespace jaxport::lower {
namespace {

bool is_zero(Ctx& c, const Value& x) {
  const Tensor* known = c.op.known(x);
  return known != nullptr && known->is_scalar() && known->at(0) == 0;
}

// A number is true when it is not 0; only NaN differs from itself.
Results ne(Ctx& c) {
  auto [x, y] = c.in<2>();
  if (x == y && is_float(x.dtype())) return is_nan(x);
  if (is_zero(c, x)) std::swap(x, y);
  const bool is_truth = is_zero(c, y) && x.dtype() != DType::kBool;
  return is_truth ? cast(x, DType::kBool) : c.op.Not(equal(x, y));
}

// x before y in the total order -NaN < -inf < … < -0 < 0 < … < inf < NaN. Before opset 26 no op
// sees the sign of a NaN. Equal numbers have other reciprocals when they are -0 and 0.
Value is_before(Ctx& c, const Value& x, const Value& y) {
  if (!is_float(x.dtype())) return x < y;
  if (c.op.opset() >= 26) return total_order(c, x) < total_order(c, y);
  const Value is_sign = equal(x, y) & (reciprocal(x) < reciprocal(y));
  return (x < y) | is_sign | (is_nan(y) & c.op.Not(is_nan(x)));
}
Results lt_to(Ctx& c) { return is_before(c, c.in(0), c.in(1)); }
Results le_to(Ctx& c) { return c.op.Not(is_before(c, c.in(1), c.in(0))); }

Results eq_to(Ctx& c) {
  auto [x, y] = c.in<2>();
  if (!is_float(x.dtype())) return equal(x, y);
  if (c.op.opset() >= 26) return equal(total_order(c, x), total_order(c, y));
  return (equal(x, y) & equal(reciprocal(x), reciprocal(y))) | (is_nan(x) & is_nan(y));
}

// A truth value takes the logical op, an integer the bitwise one.
template <OpName Logical, OpName Bitwise>
Results logic(Ctx& c) {
  return c.op.call(c.out_type().dtype == DType::kBool ? Logical.text : Bitwise.text, c.operands());
}

template <OpName Logical>
Results logic_only(Ctx& c) {
  if (c.out_type().dtype != DType::kBool) c.unsupported("integers need opset 18");
  return c.op.call(Logical.text, c.operands());
}

Results is_finite(Ctx& c) {
  auto [x] = c.in<1>();
  return c.op.Not(is_inf(x) | is_nan(x));
}

// select_n(p, a, b): a where p is false or 0, b where it is true or 1, …; an integer out of range
// picks the nearest case.
Results select_n(Ctx& c) {
  const Values& in = c.operands();
  if (in[0].dtype() == DType::kBool) return where(in[0], in[2], in[1]);
  Value result = in.back();
  for (std::size_t i = in.size() - 2; i >= 1; --i) {
    result = where(in[0] <= static_cast<std::int64_t>(i - 1), in[i], result);
  }
  return result;
}

constexpr Row kCompareRows[] = {
    // sorted by primitive
    {"and", logic<"And", "BitwiseAnd">, 18},
    {"and", logic_only<"And">},
    {"eq", same<"Equal">},
    {"eq_to", eq_to},
    {"ge", same<"GreaterOrEqual">},
    {"gt", same<"Greater">},
    {"is_finite", is_finite},
    {"le", same<"LessOrEqual">},
    {"le_to", le_to},
    {"lt", same<"Less">},
    {"lt_to", lt_to},
    {"ne", ne},
    {"not", logic<"Not", "BitwiseNot">, 18},
    {"not", logic_only<"Not">},
    {"or", logic<"Or", "BitwiseOr">, 18},
    {"or", logic_only<"Or">},
    {"select_n", select_n},
    {"xor", logic<"Xor", "BitwiseXor">, 18},
    {"xor", logic_only<"Xor">},
};
static_assert(std::ranges::is_sorted(kCompareRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> compare_rows() { return kCompareRows; }

}  // namespace jaxport::lower
