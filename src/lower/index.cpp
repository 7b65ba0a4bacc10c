// SPDX-License-Identifier: Apache-2.0
// Reading and writing at computed positions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lower/positions.h"

namespace jaxport::lower {
namespace {

// x[…, i, …] along one axis: every other dim is taken whole.
struct Take {
  std::int64_t axis;
  Ints offset_dims;  // dims of the result that come from the operand
};

std::optional<Take> take_of(const front::Eqn& eqn, const Windows& windows) {
  const bool one =
      windows.map.size() == 1 && windows.dropped == windows.map && windows.partial == windows.map;
  if (!one) return std::nullopt;
  return Take{windows.map[0], int_field(eqn, "dimension_numbers", "offset_dims")};
}

// The order in which a gather delivers the dims of its result. Gather: [operand dims before the
// axis][index dims][operand dims after it]. GatherND: [index dims][window dims of partial operand
// dims][whole operand dims].
Order gather_order(const front::Eqn& eqn, std::span<const front::Type> in,
                   std::span<const front::Type> out) {
  const Windows windows = gather_windows(eqn, in[0].shape);
  const Ints offset_dims = int_field(eqn, "dimension_numbers", "offset_dims");
  Ints index_dims;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(out[0].shape.size()); ++i) {
    if (std::ranges::find(offset_dims, i) == offset_dims.end()) index_dims.push_back(i);
  }
  Ints order;
  auto append = [&](auto first, auto last) { order.insert(order.end(), first, last); };
  if (const auto take = take_of(eqn, windows)) {
    append(offset_dims.begin(), offset_dims.begin() + take->axis);
    append(index_dims.begin(), index_dims.end());
    append(offset_dims.begin() + take->axis, offset_dims.end());
    return {{}, {order}};
  }
  append(index_dims.begin(), index_dims.end());
  Ints kept;  // operand dims that the result has, in order
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(in[0].shape.size()); ++i) {
    if (!windows.is_dropped(i)) kept.push_back(i);
  }
  Ints operand;
  for (const Ints* group : {&windows.partial, &windows.whole}) {
    for (std::int64_t dim : *group) {
      operand.push_back(dim);
      auto at = std::ranges::find(kept, dim);
      if (at != kept.end())
        order.push_back(offset_dims[static_cast<std::size_t>(at - kept.begin())]);
    }
  }
  return {{operand}, {order}};
}

double fill_value(Ctx& c) {
  if (c.has("fill_value")) {
    const front::Attr& given = c.attr("fill_value");
    if (const auto* truth = given.get_if<bool>()) return *truth ? 1 : 0;
    const auto* integer = given.get_if<std::int64_t>();
    return integer ? static_cast<double>(*integer) : c.param<double>("fill_value");
  }
  const DType dtype = c.out_type().dtype;
  if (is_float(dtype)) return std::numeric_limits<double>::quiet_NaN();
  // JAX fills with the smallest signed, the largest unsigned number.
  const int bits = bit_width(dtype);
  if (is_signed(dtype)) return -std::ldexp(1.0, bits - 1);
  return is_unsigned(dtype) ? std::ldexp(1.0, bits) - 1 : 1;
}

Value filled(Ctx& c, Value taken, Value valid, std::size_t before) {
  Dims mask_shape(before, Dim(1));
  mask_shape.insert(mask_shape.end(), valid.shape().begin(), valid.shape().end());
  mask_shape.resize(taken.rank(), Dim(1));
  return c.op.Where(c.reshape(valid, mask_shape), taken, c.op.scalar_like(taken, fill_value(c)));
}

// Windows at computed starts: positions for GatherND, operand dims that are taken whole last.
Value gathered(Ctx& c, const Windows& windows, const std::string& mode) {
  const Value indices = c.cast(c.in(1), DType::kI64);
  const Positions positions = positions_of(c, indices, c.in_type(0).shape, windows, true);
  Value taken = c.op.GatherND(c.in(0), positions.at);
  if (positions.valid && mode == "fill_or_drop") taken = filled(c, taken, positions.valid, 0);
  const Order order = gather_order(c.eqn(), {&c.in_type(0), 2}, {&c.out_type(), 1});
  Dims shape;
  for (std::int64_t dim : order.out[0])
    shape.push_back(c.out_type().shape[static_cast<std::size_t>(dim)]);
  return c.reshape(taken, shape);
}

bool is_known_inside(Ctx& c, Value index, const Dim& size) {
  const Tensor* known = c.op.known(index);
  if (!known || !size.is_static()) return false;
  std::int64_t i = 0;
  while (i < known->size() && known->int_at(i) >= 0 && known->int_at(i) < size.value()) ++i;
  return i == known->size();
}

// "promise_in_bounds" means "clip" here as in XLA: a broken promise is not an error there.
Results gather(Ctx& c) {
  const std::string mode = c.param<std::string>("mode");
  const Windows windows = gather_windows(c.eqn(), c.in_type(0).shape);
  if (windows.partial.empty()) return c.expand(c.in(0), c.out_type().shape);
  const auto take = take_of(c.eqn(), windows);
  if (!take) return gathered(c, windows, mode);
  auto [x, index] = c.in<2>();
  Dims index_shape = c.in_type(1).shape;
  index_shape.pop_back();
  const Dim size = c.in_type(0).shape[static_cast<std::size_t>(take->axis)];
  const bool inside_already = is_known_inside(c, index, size);
  index = c.reshape(c.cast(index, DType::kI64), index_shape);
  const onnx::Args args{{"axis", take->axis}};
  if (inside_already) return c.op.Gather(x, index, args);
  const Value zero = c.op.scalar(0, DType::kI64), last = c.op.Squeeze(c.dim(size - 1));
  const Value inside = c.op.Min(c.op.Max(index, zero), last);
  const Value taken = c.op.Gather(x, inside, args);
  if (mode != "fill_or_drop") return taken;
  return filled(c, taken, c.op.Equal(index, inside), static_cast<std::size_t>(take->axis));
}

// The start positions of a dynamic slice as one vector, clamped so that the window fits.
Value clamped_starts(Ctx& c, std::size_t first, const Dims& operand, const Dims& window) {
  Values parts;
  Dims limit;
  for (std::size_t i = first; i < c.operands().size(); ++i) {
    parts.push_back(c.reshape(c.cast(c.in(i), DType::kI64), {1}));
    limit.push_back(operand[i - first] - window[i - first]);
  }
  const Value starts = parts.size() == 1 ? parts[0] : c.op.call("Concat", parts, {{"axis", 0}});
  return c.op.Min(c.op.Max(starts, c.ints({0})), c.shape(limit));
}

Results dynamic_slice(Ctx& c) {
  const Dims sizes = c.param<Dims>("slice_sizes");
  if (sizes.empty()) return c.in(0);
  const Value starts = clamped_starts(c, 1, c.in_type(0).shape, sizes);
  const Value ends = c.op.Add(starts, c.shape(sizes));
  return c.op.call_with_shape("Slice", {c.in(0), starts, ends}, {}, sizes);
}

// Positions of all elements of a window at `starts`: i64[window…, rank].
Value window_positions(Ctx& c, Value starts, const Dims& window) {
  Values columns;
  Dims column_shape = window;
  column_shape.emplace_back(1);
  for (std::size_t i = 0; i < window.size(); ++i) {
    Dims along(window.size() + 1, Dim(1));
    along[i] = window[i];
    columns.push_back(c.expand(c.reshape(range(c, window[i]), along), column_shape));
  }
  const Value offsets =
      columns.size() == 1 ? columns[0] : c.op.call("Concat", columns, {{"axis", -1}});
  return c.op.Add(offsets, starts);
}

Results dynamic_update_slice(Ctx& c) {
  const Dims window = c.in_type(1).shape;
  if (window.empty()) return c.in(1);
  if (std::ranges::find(window, Dim(0)) != window.end()) return c.in(0);
  const Value starts = clamped_starts(c, 2, c.in_type(0).shape, window);
  return c.op.ScatterND(c.in(0), window_positions(c, starts, window), c.in(1));
}

template <OpName Op>
Results arg_extreme(Ctx& c) {
  auto [x] = c.in<1>();
  const Ints axes = c.param<Ints>("axes");
  if (axes.size() != 1) c.unsupported("more than one axis");
  return c.cast(c.op.call(Op.text, {x}, {{"axis", axes[0]}, {"keepdims", 0}}), c.out_type().dtype);
}

constexpr Row kRows[] = {
    {"argmax", arg_extreme<"ArgMax">},   {"argmin", arg_extreme<"ArgMin">},
    {"dynamic_slice", dynamic_slice},    {"dynamic_update_slice", dynamic_update_slice},
    {"gather", gather, 0, gather_order},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> index_rows() { return kRows; }

}  // namespace jaxport::lower
