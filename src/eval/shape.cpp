// SPDX-License-Identifier: Apache-2.0
// Primitives that move elements and compute nothing.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "eval/eval.h"
#include "eval/view.h"

namespace jaxport::eval {
namespace {

Results identity(const Call& c) {
  c.require_counts(c.out.size(), c.in.size());
  return {c.in.begin(), c.in.end()};
}

// Sizes alone say it all: reshape without a permutation, squeeze, expand_dims. Operands after the
// first are symbolic sizes.
Results same_elements(const Call& c) {
  c.require(!c.in.empty() && c.out.size() == 1, "needs an operand and one result");
  return {reshaped(c, c.in[0], c.out_shape())};
}

Tensor permuted(const Call& c, std::string_view name) {
  const Ints permutation = c.axes(name, c.rank(0));
  c.require(std::ssize(permutation) == c.rank(0), fmt::format("'{}' is no permutation", name));
  return transposed(c.in[0], permutation);
}

Results reshape(const Call& c) {
  if (!c.has("dimensions")) return same_elements(c);
  c.require(!c.in.empty() && c.out.size() == 1, "needs an operand and one result");
  return {reshaped(c, permuted(c, "dimensions"), c.out_shape())};
}

Results transpose(const Call& c) {
  c.require_counts(1, 1);
  return {permuted(c, "permutation")};
}

Results broadcast_in_dim(const Call& c) {
  c.require(!c.in.empty() && c.out.size() == 1, "needs an operand and one result");
  const Shape shape = c.out_shape(), from = c.shape(0);
  const Ints dims = c.axes("broadcast_dimensions", std::ssize(shape));
  c.require(dims.size() == from.size(), "'broadcast_dimensions' needs one entry for each dim");
  const Ints strides = row_major_strides(from);
  StridedView view{.base = c.in[0], .sizes = shape, .strides = Ints(shape.size(), 0)};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    c.require(from[i] == 1 || from[i] == shape[dims[i]],
              "a dim has neither size 1 nor the result's");
    if (from[i] != 1) view.strides[dims[i]] = strides[i];
  }
  return {materialise(view)};
}

// Joins pieces along `axis`; all have the dtype and the other sizes of the result.
Tensor joined(const Call& c, std::span<const Tensor> pieces, std::int64_t axis, Shape shape) {
  MutableTensor out = allocate(c.out_dtype(), std::move(shape));
  const Ints strides = row_major_strides(out.tensor.shape);
  std::int64_t at = 0;
  for (const Tensor& piece : pieces) {
    c.require(piece.dtype == c.out_dtype(), "operands of different dtypes");
    Shape expected = out.tensor.shape;
    c.require(piece.shape.size() == expected.size(), "operands of different ranks");
    expected[axis] = piece.shape[axis];
    c.require(piece.shape == expected, "operands of different sizes");
    c.require(at + piece.shape[axis] <= out.tensor.shape[axis], "the result is too small");
    write_window(piece, out, {.offset = at * strides[axis], .strides = strides});
    at += piece.shape[axis];
  }
  c.require(at == out.tensor.shape[axis], "the result is too large");
  return std::move(out.tensor);
}

Results concatenate(const Call& c) {
  c.require(!c.in.empty() && c.out.size() == 1, "needs operands and one result");
  return {joined(c, c.in, c.axis("dimension", c.rank(0)), c.out_shape())};
}

Results stack(const Call& c) {
  c.require(!c.in.empty() && c.out.size() == 1, "needs operands and one result");
  const std::int64_t axis = c.axis("axis", c.rank(0) + 1);
  Results pieces(c.in.begin(), c.in.end());
  for (Tensor& piece : pieces) {
    c.require(std::ssize(piece.shape) >= axis, "operands of different ranks");
    piece.shape.insert(piece.shape.begin() + axis, 1);
  }
  return {joined(c, pieces, axis, c.out_shape())};
}

// Elements start, start + stride, … along each dim, as many as `sizes` says.
Tensor sliced(const Call& c, const Tensor& tensor, const Ints& start, const Ints& stride,
              const Shape& sizes) {
  StridedView view = whole(tensor);
  c.require(sizes.size() == view.sizes.size(), "the result has another rank");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    c.require(start[i] >= 0 && stride[i] >= 1, "a start or a stride is too small");
    const std::int64_t behind = std::max<std::int64_t>(tensor.shape[i] - start[i], 0);
    c.require(sizes[i] <= (behind + stride[i] - 1) / stride[i], "the slice ends outside");
    if (sizes[i] > 0) view.offset += start[i] * view.strides[i];
    if (sizes[i] > 1) view.strides[i] *= stride[i];
  }
  view.sizes = sizes;
  return materialise(view);
}

Results slice(const Call& c) {
  c.require_counts(1, 1);
  const auto params = front::SliceParams::read(c.eqn);
  const Ints start = c.bound(params.start), limit = c.bound(params.limit), &stride = params.stride;
  const Shape shape = c.out_shape();
  c.require(start.size() == c.shape(0).size() && shape.size() == start.size(),
            "one range is needed for each dim");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t taken = (limit[i] - start[i] + stride[i] - 1) / stride[i];
    c.require(shape[i] == taken, "the result has another size than declared");
  }
  return {sliced(c, c.in[0], start, stride, shape)};
}

// The results are the pieces along `axis`, in order.
Results pieces_along(const Call& c, std::int64_t axis, std::span<const Shape> shapes) {
  Ints start(c.shape(0).size(), 0);
  const Ints stride(start.size(), 1);
  Results pieces;
  for (const Shape& shape : shapes) {
    c.require(shape.size() == start.size(), "a result has another rank");
    pieces.push_back(sliced(c, c.in[0], start, stride, shape));
    start[axis] += shape[axis];
  }
  c.require(start[axis] == c.shape(0)[axis], "the results do not cover the operand");
  return pieces;
}

Results split(const Call& c) {
  c.require(c.in.size() == 1, "needs one operand");
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < c.out.size(); ++i) shapes.push_back(c.out_shape(i));
  return pieces_along(c, c.axis("axis", c.rank(0)), shapes);
}

Results unstack(const Call& c) {
  c.require(c.in.size() == 1, "needs one operand");
  const std::int64_t axis = c.axis("axis", c.rank(0));
  Shape shape = c.shape(0);
  shape[axis] = 1;
  Results pieces = pieces_along(c, axis, std::vector<Shape>(c.out.size(), shape));
  for (Tensor& piece : pieces) piece.shape.erase(piece.shape.begin() + axis);
  return pieces;
}

// Which elements of one dim survive a padding, and where the first of them lands.
struct Kept {
  std::int64_t first, count, position;
};
Kept kept_by_padding(std::int64_t size, std::int64_t low, std::int64_t step, std::int64_t out) {
  const std::int64_t first = low < 0 ? (-low + step - 1) / step : 0;
  const std::int64_t position = low + first * step;
  const std::int64_t room = out > position ? (out - position + step - 1) / step : 0;
  return {first, std::clamp<std::int64_t>(size - first, 0, room), position};
}

// padding_config: (low, high, interior) for each dim; negative low and high remove elements. The
// result's shape already knows high.
Results pad(const Call& c) {
  c.require_counts(2, 1);
  const front::Paddings config = front::PadParams::read(c.eqn).config;
  c.require(config.size() == c.shape(0).size(), "'padding_config' needs one entry for each dim");
  c.require(c.in[1].size() == 1, "the padding value is not a scalar");
  for (const Tensor& operand : c.in) {
    c.require(operand.dtype == c.out_dtype(), "operands of different dtypes");
  }
  MutableTensor out = filled(c.out_dtype(), c.out_shape(), c.in[1]);
  c.require(out.tensor.shape.size() == config.size(), "the result has another rank");
  Window window{.strides = row_major_strides(out.tensor.shape)};
  Ints first;
  Shape count;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const std::int64_t low = c.bound(config[i].low), step = c.bound(config[i].interior) + 1;
    const Kept kept = kept_by_padding(c.shape(0)[i], low, step, out.tensor.shape[i]);
    first.push_back(kept.count == 0 ? 0 : kept.first);
    count.push_back(kept.count);
    if (kept.count > 0) window.offset += kept.position * window.strides[i];
    if (kept.count > 1) window.strides[i] *= step;
  }
  write_window(sliced(c, c.in[0], first, Ints(first.size(), 1), count), out, window);
  return {std::move(out.tensor)};
}

Results rev(const Call& c) {
  c.require_counts(1, 1);
  StridedView view = whole(c.in[0]);
  for (const std::int64_t axis : c.axes("dimensions", c.rank(0))) {
    view.offset += std::max<std::int64_t>(view.sizes[axis] - 1, 0) * view.strides[axis];
    view.strides[axis] = -view.strides[axis];
  }
  return {materialise(view)};
}

// Each dim becomes (repeat, dim) with stride 0 in front.
Results tile(const Call& c) {
  c.require_counts(1, 1);
  const Ints reps = c.integers("reps");
  c.require(reps.size() == c.shape(0).size(), "'reps' needs one entry for each dim");
  const StridedView from = whole(c.in[0]);
  StridedView view{.base = c.in[0], .sizes = {}, .strides = {}};
  for (std::size_t i = 0; i < reps.size(); ++i) {
    c.require(reps[i] >= 0, "'reps' has a negative entry");
    view.sizes.insert(view.sizes.end(), {reps[i], from.sizes[i]});
    view.strides.insert(view.strides.end(), {0, from.strides[i]});
  }
  return {reshaped(c, materialise(view), c.out_shape())};
}

Results iota(const Call& c) {
  c.require(c.out.size() == 1, "needs one result");
  const Shape shape = c.out_shape();
  const std::int64_t axis = c.axis("dimension", std::ssize(shape));
  MutableTensor count = allocate(DType::kI64, {shape[axis]});
  std::iota(count.as<std::int64_t>(), count.as<std::int64_t>() + shape[axis], 0);
  StridedView view{
      .base = cast(count.tensor, c.out_dtype()), .sizes = shape, .strides = Ints(shape.size(), 0)};
  view.strides[axis] = 1;
  return {materialise(view)};
}

// The value of a symbolic dim.
Results dim_as_value(const Call& c) {
  c.require(c.out.size() == 1, "needs one result");
  return {int_scalar(c.out_dtype(), c.integer("dim"))};
}

constexpr Row kShapeRows[] = {
    {"broadcast_in_dim", broadcast_in_dim},
    {"concatenate", concatenate},
    {"copy", identity},
    {"copy_p", identity},
    {"device_put", identity},
    {"dim_as_value", dim_as_value},
    {"expand_dims", same_elements},
    {"iota", iota},
    {"name", identity},
    {"optimization_barrier", identity},
    {"pad", pad},
    {"pvary", identity},
    {"reshape", reshape},
    {"rev", rev},
    {"sharding_constraint", identity},
    {"slice", slice},
    {"split", split},
    {"squeeze", same_elements},
    {"stack", stack},
    {"stop_gradient", identity},
    {"tile", tile},
    {"transpose", transpose},
    {"unstack", unstack},
};
static_assert(std::ranges::is_sorted(kShapeRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> shape_rows() { return kShapeRows; }
}  // namespace jaxport::eval
