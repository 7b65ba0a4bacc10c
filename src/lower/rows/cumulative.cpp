// SPDX-License-Identifier: Apache-2.0
// Running sums, products, maxima, minima and log-sum-exps along an axis.
#include <algorithm>

#include "lower/rows/pad.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {
namespace {

using onnx::Operand;

// An associative operation with its neutral element.
struct Monoid {
  Value (*combine)(const Operand& a, const Operand& b);
  double neutral;
};

using Along = front::CumulativeParams;

// In log2(n) steps: after step k an element has combined the 2^k that end with it.
Value by_doubling(Ctx& c, Value x, const Along& along, const Monoid& monoid) {
  const auto axis = static_cast<std::size_t>(along.axis);
  const std::int64_t size = x.shape()[axis].value();
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    PadConfig config(x.rank());
    config[axis] = along.reverse ? PadDim{-shift, shift, 0} : PadDim{shift, -shift, 0};
    x = monoid.combine(padded(c, x, like(x, monoid.neutral), config), x);
  }
  return x;
}

// One element after the other, for an axis of symbolic size.
Value by_scan(Ctx& c, Value x, const Along& along, const Monoid& monoid) {
  Dims rest = x.shape();
  rest.erase(rest.begin() + along.axis);
  const Value start = c.expand(like(x, monoid.neutral), rest);
  const auto step = [&](onnx::Builder& op) -> Values {
    const onnx::TensorType type{x.dtype(), rest};
    const Value before = op.input("", type), element = op.input("", type);
    const Value after = monoid.combine(before, element);
    return {after, after};
  };
  const std::int64_t direction = along.reverse ? 1 : 0;
  const auto steps = [&](onnx::Builder& op) -> Values {
    return {op.call_n("Scan", {start, x}, 2,
                      {{"body", subgraph(op, step)},
                       {"num_scan_inputs", 1},
                       {"scan_input_axes", {along.axis}},
                       {"scan_output_axes", {along.axis}},
                       {"scan_input_directions", {direction}},
                       {"scan_output_directions", {direction}}})[1]};
  };
  const Dim length = x.shape()[along.axis];
  if (!onnx::can_be_zero(length)) return steps(c.op)[0];
  const auto as_it_is = [&](onnx::Builder&) -> Values { return {x}; };
  const Value result = unless_zero(c.op, c.dim(length), steps, as_it_is)[0];
  c.op.set_shape(result, x.shape());
  return result;
}

// Which elements of an axis each of its elements ends: bool[n, n].
Value ends(Ctx& c, std::int64_t size, bool reverse) {
  MutableTensor mask = allocate(DType::kBool, {size, size});
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t column = 0; column < size; ++column) {
      mask.as<bool>()[row * size + column] = reverse ? column >= row : column <= row;
    }
  }
  return c.constant(std::move(mask.tensor));
}

// Reductions take their axes as an input from opset 18 on.
bool has_few_products(Ctx& c, const Value& x, const Along& along) {
  Dim count = x.shape()[along.axis];
  for (const Dim& size : x.shape()) count = count * size;
  return x.dtype() == DType::kF32 && c.op.opset() >= 18 && count.is_static() &&
         x.shape()[along.axis].value() > 2 && count.value() <= Preferences::kFewMaskedProducts;
}

// One reduction for each element, of those that it ends and a neutral number for the others.
template <OpName Reduce>
Value by_mask(Ctx& c, const Value& x, const Along& along, double neutral) {
  const std::int64_t size = x.shape()[along.axis].value();
  Dims repeated = x.shape(), square(repeated.size() + 1, 1);
  repeated.insert(repeated.begin() + along.axis, 1);
  square[along.axis] = square[along.axis + 1] = size;
  const Value mask = c.reshape(ends(c, size, along.reverse), square);
  const Value chosen = where(mask, c.reshape(x, repeated), neutral);
  return c.op.call(Reduce.text, {chosen, c.ints({along.axis + 1})}, {{"keepdims", 0}});
}

Value cumulated(Ctx& c, Value x, const Monoid& monoid) {
  const Along along = Along::read(c.eqn());
  const bool is_static = x.shape()[along.axis].is_static();
  return is_static ? by_doubling(c, x, along, monoid) : by_scan(c, x, along, monoid);
}

// log(exp(a) + exp(b)); equal infinities have no difference.
Value log_add_exp(const Operand& a, const Operand& b) {
  const Value larger = max(a, b), difference = min(a, b) - larger;
  const Value result = larger + log(exp(difference) + 1), sum = a + b;
  return where(is_nan(difference), sum, result);
}

template <OpName Op>
Results running_op(Ctx& c) {
  const Along along = Along::read(c.eqn());
  const Value axis = c.op.scalar(static_cast<double>(along.axis), DType::kI64);
  return c.op.call(Op.text, {c.in(0), axis}, {{"reverse", along.reverse ? 1 : 0}});
}

Results cumlogsumexp(Ctx& c) {
  const Value x = c.in(0);
  const DType dtype = x.dtype();
  const Along along = Along::read(c.eqn());
  if (has_few_products(c, x, along)) return by_mask<"ReduceLogSumExp">(c, x, along, -kInfinity);
  const Value wide = byte_width(dtype) < 4 ? cast(x, DType::kF32) : x;
  return cast(cumulated(c, wide, {log_add_exp, -kInfinity}), dtype);
}
Results cummax(Ctx& c) { return cumulated(c, c.in(0), {onnx::max, -kInfinity}); }
Results cummin(Ctx& c) { return cumulated(c, c.in(0), {onnx::min, kInfinity}); }
Results cumprod(Ctx& c) {
  const Value x = c.in(0);
  const Along along = Along::read(c.eqn());
  if (has_few_products(c, x, along)) return by_mask<"ReduceProd">(c, x, along, 1);
  return cumulated(c, x, {onnx::operator*, 1});
}

front::Attrs reordered(const front::Eqn& eqn, const Ints& order) {
  const auto at = std::ranges::find(order, Along::read(eqn).axis);
  front::Attrs attrs = eqn.attrs;
  front::set(attrs, "axis", at - order.begin());
  return attrs;
}

constexpr Row row(std::string_view primitive, Results (*lower)(Ctx&), int since_opset = 0) {
  return {primitive, lower, since_opset, nullptr, reordered};
}

constexpr Row kCumulativeRows[] = {
    // sorted by primitive
    row("cumlogsumexp", cumlogsumexp),
    row("cummax", cummax),
    row("cummin", cummin),
    row("cumprod", running_op<"CumProd">, 26),
    row("cumprod", cumprod),
    row("cumsum", running_op<"CumSum">),
};
static_assert(std::ranges::is_sorted(kCumulativeRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> cumulative_rows() { return kCumulativeRows; }

}  // namespace jaxport::lower
