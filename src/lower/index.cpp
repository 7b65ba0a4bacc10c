// SPDX-License-Identifier: Apache-2.0
// Reading and writing at computed positions.
#include <algorithm>
#include <limits>

#include "lower/ctx.h"

namespace jaxport::lower {
namespace {

Ints int_field(const front::Record& record, std::string_view name) {
  Ints result;
  for (const auto& [field, value] : record.fields) {
    if (field != name) continue;
    for (const front::Attr& entry : *value.get_if<front::List>())
      result.push_back(*entry.get_if<std::int64_t>());
  }
  return result;
}

// x[…, i, …] along one axis: every other dim is taken whole.
struct Take {
  std::int64_t axis;
  Ints offset_dims;  // dims of the result that come from the operand
};

std::optional<Take> take_of(const front::Eqn& eqn, std::span<const front::Type> in) {
  const auto* numbers = front::find(eqn.attrs, "dimension_numbers")->get_if<front::Record>();
  const Ints map = int_field(*numbers, "start_index_map");
  if (map.size() != 1 || int_field(*numbers, "collapsed_slice_dims") != map ||
      !int_field(*numbers, "operand_batching_dims").empty()) {
    return std::nullopt;
  }
  const Dims sizes = front::get_dims(eqn, "slice_sizes");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<std::int64_t>(i) != map[0] && !(sizes[i] == in[0].shape[i]))
      return std::nullopt;
  }
  return Take{map[0], int_field(*numbers, "offset_dims")};
}

// Gather delivers [operand dims before the axis][index dims][operand dims after it]; jaxpr order is
// a permutation of that.
Order gather_order(const front::Eqn& eqn, std::span<const front::Type> in,
                   std::span<const front::Type> out) {
  const auto take = take_of(eqn, in);
  if (!take) return {};
  Ints order(take->offset_dims.begin(), take->offset_dims.begin() + take->axis);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(out[0].shape.size()); ++i) {
    if (std::ranges::find(take->offset_dims, i) == take->offset_dims.end()) order.push_back(i);
  }
  order.insert(order.end(), take->offset_dims.begin() + take->axis, take->offset_dims.end());
  return {{}, {order}};
}

Results gather(Ctx& c) {
  const auto take = take_of(c.eqn(), {&c.in_type(0), 2});
  if (!take) c.unsupported("only gathers along one axis are supported");
  auto [x, index] = c.in<2>();
  Dims index_shape = c.in_type(1).shape;
  index_shape.pop_back();
  index = c.reshape(c.cast(index, DType::kI64), index_shape);
  const onnx::Args args{{"axis", take->axis}};
  const std::string mode = c.param<std::string>("mode");
  if (mode == "promise_in_bounds") return c.op.Gather(x, index, args);
  const Value zero = c.op.scalar(0, DType::kI64);
  const Value last =
      c.op.Squeeze(c.dim(c.in_type(0).shape[static_cast<std::size_t>(take->axis)] - 1));
  const Value inside = c.op.Min(c.op.Max(index, zero), last);
  const Value taken = c.op.Gather(x, inside, args);
  if (mode == "clip") return taken;
  // fill_or_drop: positions outside give the fill value.
  double fill = is_float(x.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 0;
  if (c.has("fill_value")) fill = c.param<double>("fill_value");
  Dims mask_shape = index_shape;
  mask_shape.resize(index_shape.size() + x.rank() - 1 - static_cast<std::size_t>(take->axis),
                    Dim(1));
  const Value valid = c.reshape(c.op.Equal(index, inside), mask_shape);
  return c.op.Where(valid, taken, c.op.scalar_like(x, fill));
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
    const Value zero = c.op.scalar(0, DType::kI64), one = c.op.scalar(1, DType::kI64);
    const Value range =
        c.op.call_with_shape("Range", {zero, c.op.Squeeze(c.dim(window[i])), one}, {}, {window[i]});
    Dims along(window.size() + 1, Dim(1));
    along[i] = window[i];
    columns.push_back(c.expand(c.reshape(range, along), column_shape));
  }
  const Value offsets =
      columns.size() == 1 ? columns[0] : c.op.call("Concat", columns, {{"axis", -1}});
  return c.op.Add(offsets, starts);
}

Results dynamic_update_slice(Ctx& c) {
  const Dims window = c.in_type(1).shape;
  if (window.empty()) return c.in(1);
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
