// SPDX-License-Identifier: Apache-2.0
// Reductions over sliding windows.
#include "eval/window.h"

#include <algorithm>

#include "eval/arithmetic.h"
#include "eval/map.h"

namespace jaxport::eval {
namespace {

template <class Monoid>
Results reduce_window(const Call& c) {
  c.require_counts(1, 1);
  const SlidingWindow window = SlidingWindow::read(c);
  const Shape shape = c.out_shape();
  const DType dtype = c.in[0].dtype;
  const auto slide = [&]<class T>(T) -> Results requires Takes<decltype(Monoid::kOp), T, 2> {
    const Array<T> x = load_all<T>(c.in[0]);
    Array<T> totals(element_count(shape));
    T* total = totals.begin();
    for (Odometer o(shape); o.valid(); o.next(), ++total) {
      *total = Monoid::template start<T>(dtype);
      window.each(o.index(),
                  [&](std::int64_t, std::int64_t at) { *total = Monoid::kOp(*total, x[at]); });
    }
    return {store_all(totals, c.out_dtype(), shape)};
  };
  return with_class<Results>(accumulator_class_of(dtype), slide, [&] { return c.no_dtype(dtype); });
}

constexpr Row kWindowRows[] = {
    {"reduce_window_max", reduce_window<Maximum>},
    {"reduce_window_min", reduce_window<Minimum>},
    {"reduce_window_sum", reduce_window<Sum>},
};
static_assert(std::ranges::is_sorted(kWindowRows, {}, &Row::primitive));

}  // namespace

SlidingWindow::SlidingWindow(std::vector<WindowDim> dims) : dims_(std::move(dims)) {
  Shape operand;
  for (const WindowDim& dim : dims_) {
    operand.push_back(dim.operand);
    window_.push_back(dim.window);
  }
  strides_ = row_major_strides(operand);
}

SlidingWindow SlidingWindow::read(const Call& c) {
  const auto window = front::WindowParams::read(c.eqn);
  c.require(window.size.size() == c.shape(0).size(), "the window has another rank");
  c.require(window.size.size() == c.out_shape().size(), "the result has another rank");
  std::vector<WindowDim> dims;
  for (std::size_t i = 0; i < window.size.size(); ++i) {
    const front::Padding& padding = window.padding[i];
    dims.push_back({c.shape(0)[i], window.size[i], window.stride[i], c.bound(padding.low),
                    padding.interior + 1, window.dilation[i]});
  }
  return SlidingWindow(std::move(dims));
}

std::optional<std::int64_t> SlidingWindow::element_under(const Ints& o, const Ints& k) const {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const std::optional<std::int64_t> at = dims_[i].read(o[i], k[i]);
    if (!at) return std::nullopt;
    offset += *at * strides_[i];
  }
  return offset;
}

std::span<const Row> window_rows() { return kWindowRows; }
}  // namespace jaxport::eval
