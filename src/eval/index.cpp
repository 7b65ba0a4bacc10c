// SPDX-License-Identifier: Apache-2.0
// Reading and writing at positions that are operands.
#include <algorithm>
#include <cstring>
#include <limits>

#include "eval/element.h"
#include "eval/index_windows.h"
#include "eval/view.h"

namespace jaxport::eval {
namespace {

IndexDims gather_dims(const Call& c) {
  const auto dims = [&](std::string_view field, std::int64_t rank) {
    return c.axes(c.field("dimension_numbers", field), rank);
  };
  const std::int64_t batch_rank = std::max<std::int64_t>(c.rank(1) - 1, 0);
  IndexDims found{dims("offset_dims", std::ssize(c.out[0].shape)),
                  dims("collapsed_slice_dims", c.rank(0)), dims("start_index_map", c.rank(0)),
                  dims("operand_batching_dims", c.rank(0)),
                  dims("start_indices_batching_dims", batch_rank)};
  return found;
}

// What an out-of-bounds window is filled with: fill_value, or JAX's choice for the dtype.
Tensor fill_element(const Call& c) {
  const DType dtype = c.out_dtype();
  if (c.has("fill_value")) {
    const front::Attr& value = c.attr("fill_value");
    if (const auto* number = value.get_if<double>()) return scalar(dtype, *number);
    if (const auto* truth = value.get_if<bool>()) return int_scalar(dtype, *truth);
    if (const auto* integer = value.get_if<std::int64_t>()) return int_scalar(dtype, *integer);
    c.fail("'fill_value' is not a number");
  }
  if (is_signed(dtype)) return int_scalar(dtype, lowest<std::int64_t>(dtype));
  if (is_unsigned(dtype)) return int_scalar(dtype, -1);
  if (dtype == DType::kBool) return int_scalar(dtype, 1);
  return scalar(dtype, std::numeric_limits<double>::quiet_NaN());
}

Results gather(const Call& c) {
  c.require_counts(2, 1);
  c.require(c.in[0].dtype == c.out_dtype(), "the result has another dtype");
  const std::string mode = c.text("mode");
  const bool clips = mode == "clip" || mode == "promise_in_bounds";
  c.require(clips || mode == "fill_or_drop", "unknown 'mode'");
  const Shape shape = c.out_shape();
  const IndexWindows windows(c, gather_dims(c), c.shape(0), c.in[1], c.integers("slice_sizes"),
                             shape);
  MutableTensor out =
      clips ? allocate(c.out_dtype(), shape) : filled(c.out_dtype(), shape, fill_element(c));
  const auto width = static_cast<std::int64_t>(byte_width(c.out_dtype()));
  windows.for_each(clips ? OutOfBounds::kClip : OutOfBounds::kSkip,
                   [&](std::int64_t to, std::optional<std::int64_t> from) {
                     c.require(from || !clips, "a window is larger than the operand");
                     if (!from) return;
                     for (std::size_t i = 0; i < windows.outer_steps().size(); ++i) {
                       std::memcpy(
                           out.bytes + (to + windows.outer_steps()[i]) * width,
                           c.in[0].data.get() + (*from + windows.operand_steps()[i]) * width,
                           static_cast<std::size_t>(width));
                     }
                   });
  return {std::move(out.tensor)};
}

// Start indices are scalar operands from `first` on; they are clamped so that the window fits.
std::int64_t clamped_start(const Call& c, std::size_t first, const Shape& window) {
  const Shape& operand = c.shape(0);
  c.require(c.in.size() >= first + operand.size(), "needs a start index for each dim");
  c.require(window.size() == operand.size(), "the window has another rank");
  const Ints strides = row_major_strides(operand);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const Tensor& index = c.in[first + i];
    c.require(index.size() == 1 && is_integer(index.dtype), "a start index is no integer scalar");
    c.require(window[i] <= operand[i], "the window is larger than the operand");
    const std::int64_t last = operand[i] - window[i];
    offset += std::clamp<std::int64_t>(index.int_at(0), 0, last) * strides[i];
  }
  return offset;
}

Results dynamic_slice(const Call& c) {
  c.require(!c.in.empty() && c.out.size() == 1, "needs an operand and one result");
  StridedView view = whole(c.in[0]);
  view.sizes = c.out_shape();
  view.offset = clamped_start(c, 1, view.sizes);
  return {materialise(view)};
}

Results dynamic_update_slice(const Call& c) {
  c.require(c.in.size() >= 2 && c.out.size() == 1, "needs an operand, an update and one result");
  c.require(c.in[0].dtype == c.in[1].dtype, "operands of different dtypes");
  const Window window{.offset = clamped_start(c, 2, c.shape(1)),
                      .strides = row_major_strides(c.shape(0))};
  MutableTensor out = copy_of(c.in[0]);
  write_window(c.in[1], out, window);
  return {std::move(out.tensor)};
}

constexpr Row kRows[] = {
    {"dynamic_slice", dynamic_slice},
    {"dynamic_update_slice", dynamic_update_slice},
    {"gather", gather},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> index_rows() { return kRows; }
}  // namespace jaxport::eval
