// SPDX-License-Identifier: Apache-2.0
// Orders by TopK, which keeps the order of equal elements.
#include <algorithm>

#include "lower/rows/float_bits.h"

namespace jaxport::lower {
namespace {

// Numbers that stand for x in an order where NaN comes last; the first decides, then the next. In
// f64 the infinities of narrower floats have room below the one that stands for NaN.
Values keys_of(const Value& x) {
  if (!is_float(x.dtype())) return {x};
  const Value nan = is_nan(x);
  if (x.dtype() == DType::kF64) return {cast(nan, DType::kI32), where(nan, 0, x)};
  const Value finite = clip(cast(x, DType::kF64), -1e300, 1e300);
  return {where(nan, kInfinity, finite)};
}

// top_k orders floats by their bits: -NaN, -inf, …, -0, 0, …, inf, NaN. ONNX sees them from opset
// 26 on; before it the signs of zeros and of NaNs do not count.
Values total_order_keys_of(Ctx& c, Value x) {
  if (!is_float(x.dtype()) || c.op.opset() < 26) return keys_of(x);
  return {total_order(c, x)};
}

struct Direction {
  std::int64_t axis;
  bool largest_first;
};

struct Top {
  Value elements, positions;
};
Top top(Ctx& c, Value x, const Dim& count, const Direction& order) {
  Dims shape = x.shape();
  shape[order.axis] = count;
  const Values found =
      c.op.call_n("TopK", {x, c.dim(count)}, 2,
                  {{"axis", order.axis}, {"largest", order.largest_first ? 1 : 0}});
  for (const Value& result : found) c.op.set_shape(result, shape);
  return {found[0], found[1]};
}

Value taken(Ctx& c, Value x, Value positions, std::int64_t axis) {
  return c.op.GatherElements(x, positions, onnx::Args{{"axis", axis}});
}

// The positions of the elements in order. Sorting by the last key first and by the first key last
// leaves what the first calls equal in the order of the others.
Value positions_by(Ctx& c, const Values& keys, const Direction& order) {
  const Dim size = keys[0].shape()[order.axis];
  Value positions;
  for (const Value& key : Values(keys.rbegin(), keys.rend())) {
    const Value reordered = positions ? taken(c, key, positions, order.axis) : key;
    const Value next = top(c, reordered, size, order).positions;
    positions = positions ? taken(c, positions, next, order.axis) : next;
  }
  return positions;
}

Results sort(Ctx& c) {
  const auto params = front::SortParams::read(c.eqn());
  const Direction order{params.axis, false};
  const Values& in = c.operands();
  Values keys;
  for (std::size_t i = 0; i < params.keys; ++i) {
    const Values more = keys_of(in[i]);
    keys.insert(keys.end(), more.begin(), more.end());
  }
  const Dim size = in[0].shape()[order.axis];
  if (in.size() == 1 && keys == in) return top(c, in[0], size, order).elements;
  const Value positions = positions_by(c, keys, order);
  Values results;
  for (const Value& x : in) results.push_back(taken(c, x, positions, order.axis));
  return results;
}

// The first k elements in order, and where they are.
Results first_of(Ctx& c, Value x, const Values& keys, const Dim& k, const Direction& order) {
  const DType index_dtype = c.out_type(1).dtype;
  if (keys.size() == 1) {
    const Top found = top(c, keys[0], k, order);
    const Value elements = keys[0] == x ? found.elements : taken(c, x, found.positions, order.axis);
    return Values{elements, cast(found.positions, index_dtype)};
  }
  const Value positions = c.op.call_with_shape(
      "Slice", {positions_by(c, keys, order), c.ints({0}), c.dim(k), c.ints({order.axis})}, {},
      c.out_type(1).shape);
  return Values{taken(c, x, positions, order.axis), cast(positions, index_dtype)};
}

Results top_k(Ctx& c) {
  auto [x] = c.in<1>();
  const auto axis =
      c.has("axis") ? c.param<std::int64_t>("axis") : static_cast<std::int64_t>(x.rank()) - 1;
  return first_of(c, x, total_order_keys_of(c, x), front::get_dim(c.eqn(), "k"), {axis, true});
}

// Exact, as XLA is on CPU.
Results approx_top_k(Ctx& c) {
  auto [x] = c.in<1>();
  if (!c.param<bool>("aggregate_to_topk")) c.unsupported("aggregate_to_topk is False");
  const auto given = c.param<std::int64_t>("reduction_dimension");
  const auto axis = given < 0 ? given + static_cast<std::int64_t>(x.rank()) : given;
  const Direction order{axis, c.param<bool>("is_max_k")};
  return first_of(c, x, keys_of(x), front::get_dim(c.eqn(), "k"), order);
}

constexpr Row kSortRows[] = {{"approx_top_k", approx_top_k}, {"sort", sort}, {"top_k", top_k}};
static_assert(std::ranges::is_sorted(kSortRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> sort_rows() { return kSortRows; }

}  // namespace jaxport::lower
