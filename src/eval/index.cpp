// SPDX-License-Identifier: Apache-2.0
// Reading and writing at positions that are operands.
#include <algorithm>
#include <cstring>

#include "eval/element.h"
#include "eval/index_windows.h"
#include "eval/view.h"

namespace jaxport::eval {
namespace {

Results gather(const Call& c) {
  c.require_counts(2, 1);
  c.require(c.in[0].dtype == c.out_dtype(), "the result has another dtype");
  const auto params = front::GatherParams::read(c.eqn);
  const bool clips = params.mode == "clip" || params.mode == "promise_in_bounds";
  c.require(clips || params.mode == "fill_or_drop", "unknown 'mode'");
  const Shape shape = c.out_shape();
  const IndexWindows windows(c, params, c.shape(0), c.in[1], c.bound(params.slice_sizes), shape);
  MutableTensor out = clips ? allocate(c.out_dtype(), shape)
                            : filled(c.out_dtype(), shape, params.fill(c.out_dtype()));
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

constexpr Row kIndexRows[] = {
    {"dynamic_slice", dynamic_slice},
    {"dynamic_update_slice", dynamic_update_slice},
    {"gather", gather},
};
static_assert(std::ranges::is_sorted(kIndexRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> index_rows() { return kIndexRows; }
}  // namespace jaxport::eval
