// SPDX-License-Identifier: Apache-2.0
// Reductions whose operation is a region: reduce and reduce_window.
#include <algorithm>

#include "eval/eval.h"
#include "eval/view.h"
#include "eval/window.h"

namespace jaxport::eval {
namespace {

Tensor element(const Tensor& tensor, std::int64_t at) {
  return materialise({.base = tensor, .offset = at, .sizes = {}, .strides = {}});
}

// Operands: as many arrays as results, then a start value for each. The region takes the values so
// far and the next elements, one of each array.
class RegionFold {
 public:
  explicit RegionFold(const Call& call) : c(call) {
    c.require(!c.out.empty() && c.in.size() == 2 * c.out.size(), "needs an array for each result");
    for (std::size_t i = 0; i < c.out.size(); ++i) {
      c.require(c.in[i].shape == c.shape(0), "operands of different shapes");
      c.require(c.in[count() + i].is_scalar(), "a start value is not a scalar");
      c.require(c.out_shape(i) == c.out_shape(0), "results of different shapes");
      c.require(c.in[i].dtype == c.out_dtype(i) && c.in[count() + i].dtype == c.out_dtype(i),
                "operands of different dtypes");
      out.push_back(allocate(c.out_dtype(i), c.out_shape(i)));
    }
  }

  std::size_t count() const { return c.out.size(); }

  void start() { totals.assign(c.in.begin() + static_cast<std::ptrdiff_t>(count()), c.in.end()); }

  void take(std::int64_t offset) {
    Results operands = totals;
    for (std::size_t i = 0; i < count(); ++i) operands.push_back(element(c.in[i], offset));
    totals = run(c.region("jaxpr"), operands, c.bindings);
    c.require(totals.size() == count(), "the region has another number of results");
  }

  void finish(std::int64_t offset) {
    for (std::size_t i = 0; i < count(); ++i) {
      c.require(totals[i].is_scalar() && totals[i].dtype == c.out_dtype(i),
                "the region gives another type than declared");
      write_window(totals[i], out[i], {.offset = offset, .strides = {}});
    }
  }

  Results results() {
    Results tensors;
    for (MutableTensor& tensor : out) tensors.push_back(std::move(tensor.tensor));
    return tensors;
  }

 private:
  const Call& c;
  Results totals;
  std::vector<MutableTensor> out;
};

Results reduce(const Call& c) {
  RegionFold fold(c);
  const Ints axes = c.axes("dimensions", c.rank(0));
  const Ints strides = row_major_strides(c.shape(0));
  Shape kept, reduced;
  Ints kept_strides, reduced_strides;
  for (std::int64_t i = 0; i < c.rank(0); ++i) {
    const bool is_reduced = std::ranges::find(axes, i) != axes.end();
    (is_reduced ? reduced : kept).push_back(c.shape(0)[i]);
    (is_reduced ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  c.require(kept == c.out_shape(), "the result has another shape");
  std::int64_t result = 0;
  for (Odometer o(kept); o.valid(); o.next(), ++result) {
    fold.start();
    const std::int64_t base = offset_of(o.index(), kept_strides);
    for (Odometer k(reduced); k.valid(); k.next()) {
      fold.take(base + offset_of(k.index(), reduced_strides));
    }
    fold.finish(result);
  }
  return fold.results();
}

// Elements in the padding take no part, as in XLA on CPU.
Results reduce_window(const Call& c) {
  RegionFold fold(c);
  const std::vector<WindowDim> dims = window_dims(c);
  const Ints strides = row_major_strides(c.shape(0));
  const Shape shape = c.out_shape();
  c.require(shape.size() == dims.size(), "the result has another rank");
  Shape window;
  for (const WindowDim& dim : dims) window.push_back(dim.window);
  std::int64_t result = 0;
  for (Odometer o(shape); o.valid(); o.next(), ++result) {
    fold.start();
    for (Odometer k(window); k.valid(); k.next()) {
      const auto at = element_under(dims, strides, o.index(), k.index());
      if (at) fold.take(*at);
    }
    fold.finish(result);
  }
  return fold.results();
}

constexpr Row kRows[] = {{"reduce", reduce}, {"reduce_window", reduce_window}};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> fold_rows() { return kRows; }
}  // namespace jaxport::eval
