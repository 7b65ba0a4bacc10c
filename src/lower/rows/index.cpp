// SPDX-License-Identifier: Apache-2.0
// Reading and writing one window at a computed position, and the positions of extremes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lower/rows/nan.h"
#include "lower/rows/positions.h"

namespace jaxport::lower {
namespace {

// The dims in which a window is smaller than the operand.
Ints moving_dims(const Dims& operand, const Dims& window) {
  Ints dims;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    if (!(window[i] == operand[i])) dims.push_back(static_cast<std::int64_t>(i));
  }
  return dims;
}

// The start along `dim`, clamped so that the window fits: i64[1].
Value clamped_start(Ctx& c, std::size_t first, std::int64_t dim, const Dims& window) {
  const auto i = static_cast<std::size_t>(dim);
  const Value start = cast(c.in(first + i), DType::kI64), zero = like(start, 0);
  const Value last = scalar_dim(c, c.in_type(0).shape[i] - window[i]);
  return c.reshape(clip(start, zero, last), {1});
}

Value joined(Ctx& c, const Values& parts) {
  return parts.size() == 1 ? parts[0] : c.op.call("Concat", parts, {{"axis", 0}});
}

Results dynamic_slice(Ctx& c) {
  const Dims sizes = c.param<Dims>("slice_sizes");
  const Ints dims = moving_dims(c.in_type(0).shape, sizes);
  if (dims.empty()) return c.in(0);
  Values parts;
  Dims lengths;
  for (std::int64_t dim : dims) {
    parts.push_back(clamped_start(c, 1, dim, sizes));
    lengths.push_back(sizes[dim]);
  }
  const Value starts = joined(c, parts), ends = starts + c.shape(lengths);
  return c.op.call_with_shape("Slice", {c.in(0), starts, ends, c.ints(dims)}, {}, sizes);
}

// The positions as one constant, where the window is small and static; absent otherwise.
Value known_offsets(Ctx& c, const Dims& window) {
  constexpr std::int64_t kMostElements = 1 << 14;
  Shape shape;
  for (const Dim& size : window) {
    if (!size.is_static()) return {};
    shape.push_back(size.value());
  }
  shape.push_back(std::ssize(window));
  if (element_count(shape) > kMostElements) return {};
  MutableTensor offsets = allocate(DType::kI64, shape);
  const auto rank = static_cast<std::int64_t>(window.size());
  for (std::int64_t i = 0; i < offsets.tensor.size(); i += rank) {
    std::int64_t rest = i / rank;
    for (std::int64_t dim = rank - 1; dim >= 0; --dim) {
      offsets.as<std::int64_t>()[i + dim] = rest % shape[dim];
      rest /= shape[dim];
    }
  }
  return c.constant(std::move(offsets.tensor));
}

// Positions of all elements of a window of the leading dims: i64[window…, dims].
Value window_positions(Ctx& c, Value starts, const Dims& window) {
  if (const Value known = known_offsets(c, window)) return known + starts;
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
  return offsets + starts;
}

// ScatterND of what lies behind the last dim in which the window is a part.
Results dynamic_update_slice(Ctx& c) {
  const Dims window = c.in_type(1).shape;
  const Ints dims = moving_dims(c.in_type(0).shape, window);
  if (dims.empty()) return c.in(1);
  if (std::ranges::find(window, Dim(0)) != window.end()) return c.in(0);
  Values starts;
  for (std::int64_t dim = 0; dim <= dims.back(); ++dim) {
    const bool moves = std::ranges::find(dims, dim) != dims.end();
    starts.push_back(moves ? clamped_start(c, 2, dim, window) : c.ints({0}));
  }
  const Dims leading(window.begin(), window.begin() + dims.back() + 1);
  return c.op.ScatterND(c.in(0), window_positions(c, joined(c, starts), leading), c.in(1));
}

// JAX takes the first NaN of a row; ArgMax and ArgMin pass over them.
template <OpName Op>
struct ArgExtreme {
  Value of(onnx::Builder& op, Value x) const {
    return op.call(Op.text, {x}, {{"axis", axis}, {"keepdims", 0}});
  }

  // In f32 the infinities of 16-bit floats have room below the one that stands for NaN.
  Value of_narrow(Ctx& c, Value x) const {
    constexpr double kLargest = std::numeric_limits<float>::max();
    const double beyond = std::string_view(Op.text) == "ArgMax" ? INFINITY : -INFINITY;
    const Value wide = cast(x, DType::kF32);
    const Value finite = clip(wide, -kLargest, kLargest);
    return of(c.op, where(is_nan(x), beyond, finite));
  }

  // In rows with a NaN the first of them.
  Value of_rows_with_nan(onnx::Builder& op, Value x) const {
    const Value is_nan = cast(op.IsNaN(x), DType::kF32);
    const Value first = op.ArgMax(is_nan, onnx::Args{{"axis", axis}, {"keepdims", 0}});
    const Value count = op.ReduceSum(is_nan, op.ints({axis}), onnx::Args{{"keepdims", 0}});
    const Value otherwise = of(op, x);
    return where(count > 0, first, otherwise);
  }

  Value of_wide(Ctx& c, Value x) const {
    const auto with_nan = [&](onnx::Builder& op) { return Values{of_rows_with_nan(op, x)}; };
    const auto without = [&](onnx::Builder& op) { return Values{of(op, x)}; };
    return if_any_nan(c, x, with_nan, without, {c.out_type().shape})[0];
  }

  std::int64_t axis;
};

template <OpName Op>
Results arg_extreme(Ctx& c) {
  auto [x] = c.in<1>();
  const Ints axes = front::ReduceParams::read(c.eqn()).axes;
  if (axes.size() != 1) c.unsupported("more than one axis is not supported");
  const ArgExtreme<Op> position{axes[0]};
  const bool is_plain = !is_float(x.dtype()) || c.has("no_nan");
  const Value found = is_plain                    ? position.of(c.op, x)
                      : byte_width(x.dtype()) < 4 ? position.of_narrow(c, x)
                                                  : position.of_wide(c, x);
  return cast(found, c.out_type().dtype);
}

constexpr Row kIndexRows[] = {
    {"argmax", arg_extreme<"ArgMax">},
    {"argmin", arg_extreme<"ArgMin">},
    {"dynamic_slice", dynamic_slice},
    {"dynamic_update_slice", dynamic_update_slice},
};
static_assert(std::ranges::is_sorted(kIndexRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> index_rows() { return kIndexRows; }

}  // namespace jaxport::lower
