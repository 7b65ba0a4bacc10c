// SPDX-License-Identifier: Apache-2.0
// Orders by TopK, which keeps the order of equal elements.
#include <algorithm>

#include "lower/rows/float_bits.h"
#include "lower/rows/nan.h"

namespace jaxport::lower {
namespace {

using onnx::Builder;

// Numbers that stand for x in an order where NaN comes last; the first decides, then the next. In
// f64 the infinities of narrower floats have room below the one that stands for NaN.
Values keys_of(Builder& op, const Value& x) {
  if (!is_float(x.dtype())) return {x};
  const Value nan = op.IsNaN(x);
  if (x.dtype() == DType::kF64) return {cast(nan, DType::kI32), where(nan, 0, x)};
  const Value finite = clip(op.Cast(x, onnx::Args{{"to", DType::kF64}}), -1e300, 1e300);
  return {where(nan, kInfinity, finite)};
}

// The same for an order where -0 comes before 0, which the sign of 1 / x tells. A zero of either
// sign has room between it and the smallest of the narrower floats.
Values signed_keys_of(Builder& op, const Value& x) {
  const Value nan = op.IsNaN(x);
  if (x.dtype() == DType::kF64) {
    return {cast(nan, DType::kI32), where(nan, 0, x), cast(reciprocal(x) > 0, DType::kI32)};
  }
  const Value wide = cast(x, DType::kF64);
  const Value zero = clip(reciprocal(wide), -1e-300, 1e-300);
  const Value number = where(abs(wide) > 0, clip(wide, -1e300, 1e300), zero);
  return {where(nan, kInfinity, number)};
}

struct Direction {
  std::int64_t axis;
  bool largest_first;
};

struct Top {
  Value elements, positions;
};
// The first elements of x; `count` is i64[1].
Top top(Builder& op, const Value& x, const Value& count, const Dims& shape,
        const Direction& order) {
  const Values found = op.call_n("TopK", {x, count}, 2,
                                 {{"axis", order.axis}, {"largest", order.largest_first ? 1 : 0}});
  for (const Value& result : found) op.set_shape(result, shape);
  return {found[0], found[1]};
}

Value taken(Builder& op, const Value& x, const Value& positions, std::int64_t axis) {
  return op.GatherElements(x, positions, onnx::Args{{"axis", axis}});
}

// The positions of the elements in order. Sorting by the last key first and by the first key last
// leaves what the first calls equal in the order of the others.
Value positions_by(Builder& op, const Values& keys, const Value& size, const Direction& order) {
  Value positions;
  for (const Value& key : Values(keys.rbegin(), keys.rend())) {
    const Value reordered = positions ? taken(op, key, positions, order.axis) : key;
    const Value next = top(op, reordered, size, key.shape(), order).positions;
    positions = positions ? taken(op, positions, next, order.axis) : next;
  }
  return positions;
}

// Floats whose order without NaN is much faster than the one with it: TopK of f32 and one key in
// the place of f64 and two.
bool has_fast_order(const Value& x) { return x.dtype() == DType::kF32 || x.dtype() == DType::kF64; }

Results sort(Ctx& c) {
  const auto params = front::SortParams::read(c.eqn());
  const Direction order{params.axis, false};
  const Values& in = c.operands();
  const Value size = c.dim(in[0].shape()[order.axis]);
  const auto all_taken = [&](Builder& op, const Value& positions) {
    Values results;
    for (const Value& x : in) results.push_back(taken(op, x, positions, order.axis));
    return results;
  };
  const auto by_keys = [&](Builder& op) {
    Values keys;
    for (std::size_t i = 0; i < params.keys; ++i) {
      const Values more = c.has("no_nan") ? Values{in[i]} : keys_of(op, in[i]);
      keys.insert(keys.end(), more.begin(), more.end());
    }
    return all_taken(op, positions_by(op, keys, size, order));
  };
  const auto plainly = [&](Builder& op) {
    const Top found = top(op, in[0], size, in[0].shape(), order);
    return in.size() == 1 ? Values{found.elements} : all_taken(op, found.positions);
  };
  if (in.size() == 1 && !is_float(in[0].dtype())) return plainly(c.op);
  if (params.keys == 1 && c.has("no_nan")) return plainly(c.op);
  if (params.keys > 1 || !has_fast_order(in[0])) return by_keys(c.op);
  return if_any_nan(c, in[0], by_keys, plainly, std::vector<Dims>(in.size(), in[0].shape()));
}

// The first k elements by these keys, and where they are.
Values first_by(Ctx& c, Builder& op, const Value& x, const Values& keys, const Dim& k,
                const Direction& order) {
  const Dims shape = c.out_type(1).shape;
  const Value count = c.dim(k);
  if (keys.size() == 1) {
    const Top found = top(op, keys[0], count, shape, order);
    const bool is_itself = keys[0] == x;
    return {is_itself ? found.elements : taken(op, x, found.positions, order.axis),
            found.positions};
  }
  const Value size = c.dim(x.shape()[order.axis]);
  const Value positions = op.call_with_shape(
      "Slice", {positions_by(op, keys, size, order), op.ints({0}), count, op.ints({order.axis})},
      {}, shape);
  return {taken(op, x, positions, order.axis), positions};
}

Results first_of(Ctx& c, const Value& x, const Dim& k, const Direction& order) {
  const auto by_keys = [&](Builder& op) { return first_by(c, op, x, keys_of(op, x), k, order); };
  const auto plainly = [&](Builder& op) { return first_by(c, op, x, {x}, k, order); };
  const Dims shape = c.out_type(1).shape;
  Values found = c.has("no_nan")     ? plainly(c.op)
                 : has_fast_order(x) ? if_any_nan(c, x, by_keys, plainly, {shape, shape})
                                     : by_keys(c.op);
  return Values{found[0], cast(found[1], c.out_type(1).dtype)};
}

// top_k orders floats by their bits: -NaN, -inf, …, -0, 0, …, inf, NaN. ONNX sees them from opset
// 26 on; before it the signs of NaNs do not count, and those of zeros in exact models only.
Results top_k(Ctx& c) {
  auto [x] = c.in<1>();
  const Dim k = front::get_dim(c.eqn(), "k");
  const auto axis =
      c.has("axis") ? c.param<std::int64_t>("axis") : static_cast<std::int64_t>(x.rank()) - 1;
  const Direction order{axis, true};
  const bool has_bits = c.op.opset() >= 26;
  if (!is_float(x.dtype()) || !(has_bits || c.has("signed_zeros"))) {
    return first_of(c, x, k, order);
  }
  const Values keys = has_bits ? Values{total_order(c, x)} : signed_keys_of(c.op, x);
  const Values found = first_by(c, c.op, x, keys, k, order);
  return Values{found[0], cast(found[1], c.out_type(1).dtype)};
}

// Exact, as XLA is on CPU.
Results approx_top_k(Ctx& c) {
  auto [x] = c.in<1>();
  if (!c.param<bool>("aggregate_to_topk")) c.unsupported("aggregate_to_topk is False");
  const auto given = c.param<std::int64_t>("reduction_dimension");
  const auto axis = given < 0 ? given + static_cast<std::int64_t>(x.rank()) : given;
  const Direction order{axis, c.param<bool>("is_max_k")};
  return first_of(c, x, front::get_dim(c.eqn(), "k"), order);
}

constexpr Row kSortRows[] = {{"approx_top_k", approx_top_k}, {"sort", sort}, {"top_k", top_k}};
static_assert(std::ranges::is_sorted(kSortRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> sort_rows() { return kSortRows; }

}  // namespace jaxport::lower
