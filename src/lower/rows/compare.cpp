// SPDX-License-Identifier: Apache-2.0
// Comparisons, selections and logic.
#include <algorithm>

#include "lower/rows/ctx.h"

namespace jaxport::lower {
namespace {

Results ne(Ctx& c) { return c.op.Not(equal(c.in(0), c.in(1))); }

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
    {"ge", same<"GreaterOrEqual">},
    {"gt", same<"Greater">},
    {"is_finite", is_finite},
    {"le", same<"LessOrEqual">},
    {"lt", same<"Less">},
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
